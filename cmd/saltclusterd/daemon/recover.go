package daemon

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// When more than half of the voters are gone for good nothing can be decided any more. An operator may then make a cluster of
// one out of a node that is left. It keeps identity, keys and secrets; the cluster's generation grows, by which nodes that were
// left behind learn, as soon as they reach it, that they are no members any more (removed.go).

// recoveredWithin is how long the node may take to lead again.
const recoveredWithin = 60 * time.Second

// RecoverPlan implements admin.Recoverer: what a recovery here would keep and lose.
func (d *Daemon) RecoverPlan(context.Context) (adminapi.RecoverPlan, error) {
	m := d.current()
	if m == nil {
		return adminapi.RecoverPlan{}, d.errNoMember()
	}
	if err := m.mayRecover(); err != nil {
		return adminapi.RecoverPlan{}, err
	}
	last, err := d.lastContact()
	if err != nil {
		return adminapi.RecoverPlan{}, err
	}
	v := m.cons.View()
	plan := adminapi.RecoverPlan{
		ClusterID: m.seed.ClusterID, UUID: m.seed.UUID, Node: string(d.id), Rev: v.Rev(), Index: m.cons.LocalStats().LastIndex,
		LastContact: last, Keys: v.KeyCount(), Address: m.port.Advertise().String(),
	}
	st := m.cons.Status()
	for _, mem := range v.Members() {
		if mem.ID != d.id {
			row := m.row(mem, st)
			plan.Drop = append(plan.Drop, adminapi.RecoverDrop{ID: row.ID, Address: row.Address, Role: row.Role, State: row.State})
		}
	}
	return plan, nil
}

// mayRecover refuses where nothing is lost.
func (m *member) mayRecover() error {
	if err := m.d.notOnWitness("carry a cluster on"); err != nil {
		return err
	}
	if _, ok := m.cons.View().Member(m.d.id); !ok {
		return adminapi.Errorf(adminapi.CodeRefused, membership.RejoinHint, "this node is not on the roster it knows")
	}
	if st := m.cons.Status(); st.HasQuorum {
		return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl remove NODE takes a node out, also a dead one",
			"the cluster has a majority and %s leads: there is nothing to recover", st.Leader)
	}
	voters, there := m.cons.Status().Voters, 0
	for _, id := range voters {
		if _, ok := m.cons.View().Member(id); ok && m.alive(id) {
			there++
		}
	}
	if there >= len(voters)/2+1 {
		return adminapi.Errorf(adminapi.CodeRefused, "wait some seconds for an election; saltclusterctl status",
			"%d of %d voters are there, which is a majority", there, len(voters))
	}
	return nil
}

// Recover implements admin.Recoverer.
func (d *Daemon) Recover(ctx context.Context, r adminapi.RecoverRequest, p admin.Progress) (adminapi.Outcome, error) {
	select {
	case d.op <- struct{}{}:
		defer func() { <-d.op }()
	default: // a recovery that somebody else has asked for, an upgrade
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeBusy, "wait for it; saltclusterctl status shows how far it is",
			"another operation is under way")
	}
	plan, err := d.RecoverPlan(ctx)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	if r.Rev != plan.Rev {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "look at the plan again", "this node has learnt something meanwhile")
	}
	m := d.current()
	d.log.Warn("making a new cluster out of this node alone", "node", d.id, "index", plan.Index, "count", len(plan.Drop))
	p("stop", "stopping to serve for some seconds")
	done := make(chan error, 1)
	m.haste.Store(true)
	m.fail(&ending{"recovering", func() error {
		done <- d.recover(m.seed)
		return nil // what could not be recovered is as it was: go on with it
	}})
	select {
	case err := <-done:
		if err != nil {
			return adminapi.Outcome{}, fmt.Errorf("nothing was changed: %w", err)
		}
	case <-ctx.Done():
		return adminapi.Outcome{}, context.Cause(ctx)
	}
	p("start", "the log is rewritten: this node is the only member")
	if err := d.awaitAlone(ctx); err != nil {
		return adminapi.Outcome{}, err
	}
	out, err := d.outcome(ctx)
	out.Message = fmt.Sprintf("%s is a cluster of one: %s, with the same identity and keys", d.id, out.ClusterID)
	for _, drop := range plan.Drop {
		out.Next = append(out.Next, fmt.Sprintf("on %s, when it is there again: saltclusterctl join %s", drop.ID, plan.Address))
	}
	return out, err
}

// recover rewrites what lies on disk; the membership is closed.
func (d *Daemon) recover(seed *membership.Record) error {
	dir := d.cfg.Paths.StateDir
	book, err := peer.OpenBook(membership.RosterPath(dir))
	if err != nil {
		return err
	}
	self, ok := book.Lookup(d.id)
	if !ok {
		return fmt.Errorf("the saved roster does not know this node")
	}
	key := randomBytes(membership.GossipKeySize)
	v, err := consensus.Recover(membership.RaftDir(dir), d.recovery(self, key, "recover"), d.log)
	if err != nil {
		return err
	}
	if err := d.rememberFormer(book.Entries()); err != nil { // it is needed only where another node is recovered, too
		d.log.Warn("whom the recovery has dropped is not remembered", "err", err)
	}
	return d.settleAlone(seed, v, self, key)
}

func (d *Daemon) recovery(self node.Entry, gossipKey []byte, cause string) state.Recovery {
	return state.Recovery{
		Survivor:  state.Member{ID: self.ID, Addr: self.Addr.String(), Fingerprint: string(self.Fingerprint), Weight: membership.DefaultWeight},
		GossipKey: state.NewSecret(gossipKey),
		Audit:     state.Audit{By: d.id, At: time.Now().UnixMilli(), Cause: cause},
	}
}

// settleAlone makes what is remembered beside the log fit to a cluster of one. Consensus would do it at the next start, too.
func (d *Daemon) settleAlone(seed *membership.Record, v state.View, self node.Entry, gossipKey []byte) error {
	next := *seed
	next.GossipKeys, next.Generation, next.Born = [][]byte{gossipKey}, v.Generation(), true
	return membership.Store(d.cfg.Paths.StateDir, &next, v.Rev(), []node.Entry{self})
}

// awaitAlone waits until this node leads and serves.
func (d *Daemon) awaitAlone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recoveredWithin)
	defer cancel()
	for {
		if m := d.current(); m != nil && !m.haste.Load() && m.cons.Serving() && m.ready() {
			return nil
		}
		if !backoff.Sleep(ctx, catchUpPoll) {
			return adminapi.Errorf(adminapi.CodeTimeout, "saltclusterctl status says what it waits for", "the cluster is recovered, but this node does not serve yet")
		}
	}
}
