package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// recoverTimeout is how long the node may take to lead again.
const recoverTimeout = 60 * time.Second

// RecoverPlan implements admin.Recoverer: what a recovery here would keep and lose.
func (r *Recoverer) RecoverPlan(context.Context) (adminapi.RecoverPlan, error) {
	m, err := r.cfg.Running()
	if err != nil {
		return adminapi.RecoverPlan{}, err
	}
	return r.planRecovery(m)
}

func (r *Recoverer) planRecovery(m Membership) (adminapi.RecoverPlan, error) {
	if err := r.checkRecoverable(m); err != nil {
		return adminapi.RecoverPlan{}, err
	}
	last, err := r.cfg.Contact.Last()
	if err != nil {
		return adminapi.RecoverPlan{}, err
	}
	v := m.Log.View()
	plan := adminapi.RecoverPlan{
		ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Node: string(r.cfg.Self), Rev: v.Rev(),
		Index: m.Log.LocalStats().LastIndex, LastContact: last, Keys: v.KeyCount(), Address: m.Address,
	}
	st := m.Log.Status()
	for _, mem := range v.Members() {
		if mem.ID != r.cfg.Self {
			row := m.Describe(mem, st)
			plan.Drop = append(plan.Drop,
				adminapi.RecoverDrop{ID: row.ID, Address: row.Address, Role: row.Role, State: row.State})
		}
	}
	return plan, nil
}

// checkRecoverable refuses a recovery where no majority is lost.
func (r *Recoverer) checkRecoverable(m Membership) error {
	if err := r.refuseWitness("continue a cluster"); err != nil {
		return err
	}
	v, st := m.Log.View(), m.Log.Status()
	if _, ok := v.Member(r.cfg.Self); !ok {
		return adminapi.Errorf(adminapi.CodeRefused, membership.RejoinHint, "this node is not in the member list that it has")
	}
	if st.HasQuorum {
		return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl remove NODE removes a node, even a dead one",
			"the cluster has a majority and %s leads: there is nothing to recover", st.Leader)
	}
	alive := 0
	for _, id := range st.Voters {
		if _, ok := v.Member(id); ok && m.Alive(id) {
			alive++
		}
	}
	if alive >= len(st.Voters)/2+1 {
		return adminapi.Errorf(adminapi.CodeRefused, "wait some seconds for an election; saltclusterctl status",
			"%d of %d voters answer, which is a majority", alive, len(st.Voters))
	}
	return nil
}

// Recover implements admin.Recoverer.
func (r *Recoverer) Recover(
	ctx context.Context, q adminapi.RecoverRequest, p admin.Progress,
) (adminapi.Outcome, error) {
	if !r.cfg.Operations.TryBegin() { // a recovery of another operator, or an upgrade
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeBusy,
			"wait for it; saltclusterctl status shows its progress", "another operation is under way")
	}
	defer r.cfg.Operations.End()
	m, err := r.cfg.Running()
	if err != nil {
		return adminapi.Outcome{}, err
	}
	plan, err := r.planRecovery(m)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	if q.Rev != plan.Rev {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl recover --dry-run, then rerun recover",
			"the cluster's state changed while the plan was shown")
	}
	r.cfg.Logger.Warn("making a new cluster out of this node alone",
		"node", r.cfg.Self, "index", plan.Index, "count", len(plan.Drop))
	p("stop", "pausing service for some seconds")
	done := make(chan error, 1)
	m.Restart(func() { done <- r.rewrite(m.Record) }) // if that fails the membership begins anew as it was
	select {
	case err := <-done:
		if err != nil {
			return adminapi.Outcome{}, fmt.Errorf("nothing was changed: %w", err)
		}
	case <-ctx.Done():
		return adminapi.Outcome{}, context.Cause(ctx)
	}
	p("start", "the log is rewritten: this node is the only member")
	if err := r.awaitServing(ctx); err != nil {
		return adminapi.Outcome{}, err
	}
	out, err := r.cfg.Outcome(ctx)
	out.Message = fmt.Sprintf("%s is a cluster of one: %s, with the same identity and keys", r.cfg.Self, out.ClusterID)
	for _, drop := range plan.Drop {
		out.Next = append(out.Next,
			fmt.Sprintf("on %s, when it is back: saltclusterctl join %s", drop.ID, plan.Address))
	}
	return out, err
}

// rewrite makes the files of a closed membership those of a cluster of one.
func (r *Recoverer) rewrite(rec *membership.Record) error {
	dir := r.cfg.Options.Paths.StateDir
	book, err := peer.OpenBook(membership.RosterPath(dir))
	if err != nil {
		return err
	}
	self, ok := book.Lookup(r.cfg.Self)
	if !ok {
		return errors.New("this node is not in the saved member list")
	}
	key := newGossipKey()
	v, err := consensus.Recover(membership.RaftDir(dir), r.describeSurvivor(self, key, "recover"), r.cfg.Logger)
	if err != nil {
		return err
	}
	// Former members matter only if another node is recovered as well.
	if err := addFormer(dir, r.cfg.Self, book.Entries(), r.cfg.Logger); err != nil {
		r.cfg.Logger.Warn("former members not stored", "err", err)
	}
	return r.storeMembership(rec, v, self, key)
}

// awaitServing waits until this node leads and serves.
func (r *Recoverer) awaitServing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	for !r.cfg.Serving() {
		if !backoff.Sleep(ctx, catchUpPoll) {
			return adminapi.Errorf(adminapi.CodeTimeout, "saltclusterctl status says what it waits for",
				"the cluster is recovered, but this node does not serve yet")
		}
	}
	return nil
}
