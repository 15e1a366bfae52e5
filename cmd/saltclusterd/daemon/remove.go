package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/returns"
)

const (
	// freshView is how long a removal waits for what the others have decided last.
	freshView = 5 * time.Second
	// removedWithin is how long it waits until nothing of the node is left.
	removedWithin = 30 * time.Second
	removedPoll   = 100 * time.Millisecond
	// outWithin is how long a node that removes itself waits for its own end as a member.
	outWithin = 5 * time.Second
)

// Remove implements admin.Governor: a node leaves the cluster, dead or alive, this one or another.
func (d *Daemon) Remove(ctx context.Context, r adminapi.RemoveRequest, p admin.Progress) (adminapi.Outcome, error) {
	m := d.current()
	if m == nil {
		return adminapi.Outcome{}, d.errNoMember()
	}
	id, err := node.ParseID(r.Node)
	if err != nil {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeInvalid, "saltclusterctl members lists them", "%v", err)
	}
	if err := m.mayRemove(ctx, id, r.Force, p); err != nil {
		return adminapi.Outcome{}, err
	}
	aside := 0 // as mayRemove says
	if r.Force {
		aside = m.drains.CountAside(ctx, id)
	} else {
		m.drains.Empty(ctx, id, p)
	}
	if m.cons.Leader() == id {
		p("leader", string(id)+" leads: handing the leadership over")
		m.dethrone(ctx, id)
	}
	p("roster", "taking "+string(id)+" off the roster: its certificate is worth nothing from now on")
	if err := m.strikeInTurn(ctx, id, r.Force, p); err != nil {
		return adminapi.Outcome{}, err
	}
	m.log.Info("node removed", "node", id)
	out := adminapi.Outcome{
		Node: string(id), ClusterID: m.seed.ClusterID, UUID: m.seed.UUID,
		Message: fmt.Sprintf("%s was removed from the cluster %s", id, m.seed.ClusterID),
		Next:    []string{"on " + string(id) + ": stop saltclusterd and the salt-master, or take it in again with saltclusterctl join PEER"},
	}
	if mem, ok := m.cons.View().Member(id); !ok || !mem.Witness {
		out.Next = append(out.Next, "take it out of the load balancers: saltclusterctl haproxy prints a configuration without it")
	}
	if aside > 0 {
		out.Next = append(out.Next, "on "+string(id)+": "+returns.DescribeAside(aside)+"; no other node has them")
	}
	if id == d.id {
		d.awaitOut(ctx, m)
	} else if r.NoWait || !m.awaitGone(ctx, id, p) {
		out.Next = append(out.Next, "the leader takes its vote and the gossip key away, if it has not yet: saltclusterctl members")
	}
	return out, nil
}

// awaitOut waits until this node works as one that was removed: what is asked of it next, leave say, is not to meet a member without a majority.
func (d *Daemon) awaitOut(ctx context.Context, m *member) {
	ctx, cancel := context.WithTimeout(ctx, outWithin)
	defer cancel()
	for d.current() == m && backoff.Sleep(ctx, removedPoll) {
	}
}

// mayRemove looks with what the cluster decided last. What only that node has it hands over, or it may not go.
func (m *member) mayRemove(ctx context.Context, id node.ID, force bool, p admin.Progress) error {
	fresh, cancel := context.WithTimeout(ctx, freshView)
	defer cancel()
	if err := m.cons.Barrier(fresh); err != nil {
		return m.noQuorum(err)
	}
	if _, ok := m.cons.View().Member(id); !ok {
		return adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl members lists them", "%s is not a member", id)
	}
	c := m.census()
	no := c.removal(id)
	if no == nil && !force {
		c.aside, c.why = m.handAside(ctx, id, p)
		no = c.removal(id)
	}
	if no != nil && !(force && no.forcible) {
		return adminapi.Errorf(adminapi.CodeRefused, no.hint, "%s", no.sentence)
	}
	return nil
}

// handAside has a node hand over the returns that its master does not answer, and says how many it still has, and why.
func (m *member) handAside(ctx context.Context, id node.ID, p admin.Progress) (left int, why string) {
	if left = m.drains.CountAside(ctx, id); left == 0 {
		return 0, ""
	}
	p("returns", fmt.Sprintf("%s: handing over to the others what its salt-master does not answer: %s", id, plural(left, "return")))
	still, why, err := m.drains.HandOverAside(ctx, id)
	if err != nil {
		return left, err.Error() // an earlier version, perhaps
	}
	return still, why
}

// dethrone makes somebody else lead. Where that fails an election does it a second later.
func (m *member) dethrone(ctx context.Context, id node.ID) {
	ctx, cancel := context.WithTimeout(ctx, freshView)
	defer cancel()
	for m.cons.Leader() == id {
		err := m.leadership.Transfer(ctx, "") // a drain may be doing the same
		if err != nil {
			m.log.Info("leadership not handed over yet", "node", id, "err", err)
		}
		if !backoff.Sleep(ctx, removedPoll) {
			return
		}
	}
}

// strikeInTurn takes a node off the roster when it is its turn: the leader wants the vote of whoever was removed before to be gone first.
// Each time it is looked again whether the node may go, for others may have gone meanwhile.
func (m *member) strikeInTurn(ctx context.Context, id node.ID, force bool, p admin.Progress) error {
	waiting, cancel := context.WithTimeout(ctx, removedWithin)
	defer cancel()
	for said := false; ; said = true {
		if err := m.mayRemove(ctx, id, force, p); err != nil {
			return err
		}
		err := m.strike(ctx, id)
		if !state.IsConflict(err) || !backoff.Sleep(waiting, removedPoll) {
			return err
		}
		if !said {
			p("roster", "waiting: "+err.Error())
		}
	}
}

// strike takes a node off the roster. A node that removes itself hears no answer when the others are quicker to cut it off.
func (m *member) strike(ctx context.Context, id node.ID) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { // ends with Propose, which ctx ends
		results, err := m.cons.Propose(ctx, state.MemberRemove{ID: id, Audit: m.audit("remove")})
		if err == nil {
			err = results[0].Err()
		}
		done <- err
	}()
	for {
		var err error
		select {
		case err = <-done:
			if err == nil {
				return nil
			}
		case <-time.After(removedPoll):
		}
		switch left := m.left.Load(); {
		case left != nil && id == m.d.id:
			return nil
		case left != nil:
			return errLeft(*left)
		case err != nil:
			return fmt.Errorf("remove %s: %w", id, err)
		}
	}
}

// awaitGone waits until the node has no vote and does not know the gossip key.
func (m *member) awaitGone(ctx context.Context, id node.ID, p admin.Progress) bool {
	ctx, cancel := context.WithTimeout(ctx, removedWithin)
	defer cancel()
	said := ""
	for {
		step := ""
		st := m.cons.Status()
		switch {
		case slices.Contains(st.Voters, id), slices.Contains(st.Learners, id):
			step = "the leader takes its vote away"
		case m.cons.View().GossipDue():
			step = "the others get a new gossip key"
		default:
			return true
		}
		if step != said {
			p("leader", step)
			said = step
		}
		if !backoff.Sleep(ctx, removedPoll) {
			return false
		}
	}
}

// decidedWithin is how long the cluster has to decide what an operator wants; without a majority it never does.
const decidedWithin = 10 * time.Second

// undecided says whether an error means that there was nobody to decide, within decidedWithin of ctx.
func undecided(ctx context.Context, err error) bool {
	return errors.Is(err, consensus.ErrNoLeader) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

// lacksQuorum says whether something was not decided for want of a majority.
func (m *member) lacksQuorum(err error) bool {
	return errors.Is(err, consensus.ErrNoLeader) || errors.Is(err, context.DeadlineExceeded) && !m.cons.Status().HasQuorum
}

// errLeft answers who wanted something decided on a node that was removed meanwhile.
func errLeft(reason string) error {
	return adminapi.Errorf(adminapi.CodeNotMember, "on another node, saltclusterctl members shows what was done", "this node is no member any more: %s", reason)
}

// noQuorum says who is away and what to type.
func (m *member) noQuorum(err error) error {
	if left := m.left.Load(); left != nil { // the cluster may be well
		return errLeft(*left)
	}
	c := m.census()
	m.log.Warn("no majority for an admin operation", "err", err)
	return adminapi.Errorf(adminapi.CodeNoQuorum, c.hint(), "no majority of the cluster can be reached, so nothing can be decided%s", c.missing())
}

// census is what decides whether a node may be removed.
type census struct {
	voters []node.ID
	alive  map[node.ID]bool // as gossip sees it
	serve  []node.ID        // members with a salt-master
	aside  int              // returns that the salt-master of the node in question does not answer, and that were not handed over
	why    string           // they were not
}

func (m *member) census() census {
	c := census{alive: map[node.ID]bool{}}
	v := m.cons.View()
	for _, id := range m.cons.Status().Voters {
		if _, ok := v.Member(id); ok { // else it has been removed, and nobody is removed before its vote is gone
			c.voters = append(c.voters, id)
		}
	}
	for _, mem := range v.Members() {
		c.alive[mem.ID] = m.alive(mem.ID)
		if !mem.Witness {
			c.serve = append(c.serve, mem.ID)
		}
	}
	return c
}

// refusal is why a node may not be removed.
type refusal struct {
	sentence, hint string
	forcible       bool
}

// removal says why id may not be removed; nil when it may.
func (c census) removal(id node.ID) *refusal {
	voters, living := 0, 0
	for _, v := range c.voters {
		if v == id {
			continue
		}
		voters++
		if c.alive[v] {
			living++
		}
	}
	need := voters/2 + 1
	switch {
	case len(c.serve) == 1 && c.serve[0] == id:
		return &refusal{sentence: fmt.Sprintf("%s is the last node with a salt-master", id), hint: "join another one first: saltclusterctl join"}
	case voters == 0:
		return &refusal{sentence: fmt.Sprintf("%s is the only node that votes", id), hint: "wait until another member votes: saltclusterctl members"}
	case living < need:
		down := c.down(id)
		return &refusal{
			sentence: fmt.Sprintf("without %s only %d of %d voters would be there, and %d are needed: %s %s down",
				id, living, voters, need, enumerate(down), are(len(down))),
			hint: fmt.Sprintf("bring %s back, or remove it first (saltclusterctl remove %s); --force removes %s all the same, and then only "+
				"saltclusterctl recover --force-new-cluster helps", down[0], down[0], id),
			forcible: true,
		}
	case c.aside > 0:
		return &refusal{
			sentence: fmt.Sprintf("%s has returns that no other node has: %s (not handed over: %s)", id, returns.DescribeAside(c.aside), cmp.Or(c.why, "no reason is known")),
			hint: fmt.Sprintf("on %s: saltclusterctl returns list, then retry or drop them; or saltclusterctl drain %s, then remove --force, which leaves them there",
				id, id),
			forcible: true,
		}
	}
	return nil
}

// down lists the voters but except that are not there.
func (c census) down(except node.ID) []string {
	var out []string
	for _, v := range c.voters {
		if v != except && !c.alive[v] {
			out = append(out, string(v))
		}
	}
	return out
}

// missing is the end of a sentence about a lost quorum.
func (c census) missing() string {
	down := c.down("")
	if len(down) == 0 {
		return ""
	}
	return fmt.Sprintf(": %s %s down", enumerate(down), are(len(down)))
}

// hint says what to do about a lost quorum.
func (c census) hint() string {
	down := c.down("")
	if len(down) == 0 || len(c.voters)-len(down) > len(c.voters)/2 { // a majority is heard by gossip, but nobody leads
		return "an election takes seconds, and so does noticing that a node has died; else check the network between the nodes on the peer port, tcp and udp (saltclusterctl doctor)"
	}
	return fmt.Sprintf("start saltclusterd on %s, or check the network on the peer port; if %s gone for good: "+
		"saltclusterctl recover --force-new-cluster on one node that is left", enumerate(down), oneOf(len(down), "it is", "they are"))
}
