package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// drainPoll is how often a drain that is waited for is asked how far it is.
const drainPoll = 500 * time.Millisecond

// Drain implements admin.Drainer.
func (d *Daemon) Drain(ctx context.Context, r adminapi.DrainRequest, p admin.Progress) (adminapi.Outcome, error) {
	m, id, err := d.drainTarget(r.Node)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	if !r.Force && !m.othersServe(id) {
		return adminapi.Outcome{}, errNowhere(id)
	}
	err = m.drainWish(ctx, id, drainWishes{Over: r.Over, WaitJobs: r.WaitJobs})
	reached := err == nil
	if !reached {
		p("tell", fmt.Sprintf("%s does not answer: when it comes back it takes no minions", id))
	}
	if err := m.setDraining(ctx, id, true); err != nil {
		return adminapi.Outcome{}, err
	}
	if !r.Force && !m.othersStay(id) { // somebody was quicker with the others
		if err := m.setDraining(ctx, id, false); err != nil {
			return adminapi.Outcome{}, err
		}
		return adminapi.Outcome{}, errNowhere(id)
	}
	out := m.drainOutcome(id, "is being drained")
	if !r.Wait || !reached {
		return out, nil
	}
	if err := m.awaitDrain(ctx, id, phaseDrained, r.WaitJobs, p); err != nil {
		return adminapi.Outcome{}, err
	}
	out = m.drainOutcome(id, "is drained: it has no minions and gets none")
	out.Next = []string{"when its work is done: saltclusterctl undrain " + string(id)}
	return out, nil
}

// Undrain implements admin.Drainer.
func (d *Daemon) Undrain(ctx context.Context, r adminapi.UndrainRequest, p admin.Progress) (adminapi.Outcome, error) {
	m, id, err := d.drainTarget(r.Node)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	if err := m.setDraining(ctx, id, false); err != nil {
		return adminapi.Outcome{}, err
	}
	if _, err := m.drainReport(ctx, id); err == nil && r.Wait {
		if err := m.awaitDrain(ctx, id, phaseServing, false, p); err != nil {
			return adminapi.Outcome{}, err
		}
	}
	return m.drainOutcome(id, "takes minions"), nil
}

// drainTarget finds the member an operator means; the node itself when none is named.
func (d *Daemon) drainTarget(name string) (*member, node.ID, error) {
	m := d.current()
	if m == nil {
		return nil, "", d.errNoMember()
	}
	id := d.id
	if name != "" {
		id = node.ID(name)
	}
	var known []string
	for _, mem := range m.cons.View().Members() {
		if mem.ID == id && mem.Witness {
			return nil, "", adminapi.Errorf(adminapi.CodeInvalid, "", "%s is a witness: it has no minions", id)
		}
		if mem.ID == id {
			return m, id, nil
		}
		known = append(known, string(mem.ID))
	}
	return nil, "", adminapi.Errorf(adminapi.CodeNotFound, "members are "+strings.Join(known, ", "), "%q is no member", name)
}

func errNowhere(id node.ID) error {
	return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl members: undrain or start another node first, or join one; --force lets them go all the same",
		"no other node serves minions: those of %s would have nowhere to go", id)
}

// othersServe says whether minions of id have somewhere to go.
func (m *member) othersServe(id node.ID) bool {
	for _, n := range m.routes().Nodes {
		if n.ID != id && n.Alive && !n.Draining {
			return true
		}
	}
	return false
}

// othersStay says whether another node that is there is to serve minions, as the cluster has decided up to now.
func (m *member) othersStay(id node.ID) bool {
	for _, mem := range m.cons.View().Members() {
		if mem.ID != id && !mem.Witness && !mem.Draining && m.alive(mem.ID) {
			return true
		}
	}
	return false
}

// setDraining makes the drain of a node, or its end, a fact.
func (m *member) setDraining(ctx context.Context, id node.ID, on bool) error {
	cause := "drain"
	if !on {
		cause = "undrain"
	}
	deciding, cancel := context.WithTimeout(ctx, decidedWithin)
	defer cancel()
	results, err := m.cons.Propose(deciding, state.MemberSet{ID: id, Draining: &on, Audit: m.audit(cause)})
	if undecided(ctx, err) && !on {
		return m.noQuorum(err)
	}
	if undecided(ctx, err) {
		return adminapi.Errorf(adminapi.CodeNoQuorum, "stopping saltclusterd lets its minions go as gently",
			"no majority of the cluster can be reached, so that %s cannot be decided", cause)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", cause, id, err)
	}
	if err := results[0].Err(); err != nil {
		return adminapi.Errorf(adminapi.CodeRefused, "", "%s %s: %v", cause, id, err)
	}
	return nil
}

// awaitDrain waits until a node has reached a phase, and its jobs have ended if that is wanted, telling how far it is. A drain that had
// ended before, or was begun by somebody who does not care for jobs, does not wait for them itself.
func (m *member) awaitDrain(ctx context.Context, id node.ID, want drainPhase, jobs bool, p admin.Progress) error {
	said, most := "", 0                 // connections there were to let go
	begun, decided := time.Now(), false // what was decided elsewhere reaches this node's own view a moment later
	for {
		r, err := m.drainReport(ctx, id)
		step, text := strings.ReplaceAll(string(r.Phase), " ", "-"), r.text(id)
		if err != nil {
			step, text = "wait", fmt.Sprintf("%s does not answer", id)
		}
		if text != said {
			said = text
			left := r.Subscribers + r.Connections
			if most = max(most, left); err == nil && want == phaseDrained && most > 0 {
				p(step, text, 100*(most-left)/most)
			} else {
				p(step, text)
			}
		}
		if err == nil && r.Phase == want && !(jobs && r.Jobs > 0) {
			return nil
		}
		self, ok := m.cons.View().Member(id)
		wanted := ok && self.Draining == (want == phaseDrained)
		decided = decided || wanted
		if !wanted && (decided || time.Since(begun) > decidedWithin) {
			return adminapi.Errorf(adminapi.CodeRefused, "", "somebody else has decided otherwise about %s meanwhile", id)
		}
		if !backoff.Sleep(ctx, drainPoll) {
			return context.Cause(ctx)
		}
	}
}

// asideStay says what becomes of the returns that a node's master does not answer.
func asideStay(n int) string {
	return plural(n, "return") + " that its salt-master does not answer " + oneOf(n, "stays", "stay") + " in state_dir/returns/unanswered"
}

// text is a report as a sentence.
func (r drainReport) text(id node.ID) string {
	s := fmt.Sprintf("%s: %s; %s, %s left, %s in flight", id, r.Phase,
		plural(r.Subscribers, "subscriber"), plural(r.Connections, "request connection"), plural(r.InFlight, "request"))
	if r.Jobs > 0 {
		s += fmt.Sprintf(", %s published here %s running", plural(r.Jobs, "job"), are(r.Jobs))
	}
	if r.Kept > 0 {
		s += fmt.Sprintf(", %s kept for other nodes", plural(r.Kept, "return"))
	}
	if r.Deferred > 0 {
		s += fmt.Sprintf(", %s for its salt-master", plural(r.Deferred, "return")+oneOf(r.Deferred, " waits", " wait"))
	}
	if r.Unstored > 0 {
		s += fmt.Sprintf(", %s to be stored or copied", plural(r.Unstored, "return"))
	}
	if r.Aside > 0 {
		s += ", " + asideStay(r.Aside)
	}
	if r.Leader {
		s += ", it leads"
	}
	return s
}

func (m *member) drainOutcome(id node.ID, what string) adminapi.Outcome {
	out := adminapi.Outcome{
		Node: string(id), ClusterID: m.seed.ClusterID, UUID: m.seed.UUID, Role: adminapi.RoleLearner,
		Message: fmt.Sprintf("%s %s", id, what),
	}
	for _, voter := range m.cons.Status().Voters {
		if voter == id {
			out.Role = adminapi.RoleVoter
		}
	}
	for _, n := range m.routes().Nodes {
		if n.ID == id {
			out.Ready = n.Alive && !n.Draining
		}
	}
	return out
}
