package consensus

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
)

// Waits of the leader loop.
const (
	barrierWait  = 30 * time.Second // for raft to take the barrier entry
	barrierRetry = time.Second      // after a barrier failed
	pruneEvery   = time.Hour
)

// runTerms runs one term after the other, never two at once. A "won"
// during a term means that leadership was lost and regained meanwhile.
func (n *Node) runTerms(ctx context.Context, r *raft.Raft) {
	var end func()
	stop := func() {
		if end != nil {
			end()
			end = nil
		}
	}
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case won := <-n.notify:
			stop()
			n.checkPace()
			if won {
				end = n.startTerm(ctx, r)
			}
		}
	}
}

// startTerm starts a term; the returned function ends it and waits.
func (n *Node) startTerm(ctx context.Context, r *raft.Raft) func() {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { n.runTerm(ctx, r) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// runTerm is one term as leader: barrier, duties until ctx ends.
func (n *Node) runTerm(ctx context.Context, r *raft.Raft) {
	for {
		// Everything older leaders committed must be in our state before we act.
		err := awaitFuture(r.Barrier(barrierWait), n.batch.ended)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			break
		}
		n.log.Warn("taking office failed", "term", r.CurrentTerm(), "err", err)
		if !backoff.Sleep(ctx, barrierRetry) {
			return
		}
	}
	n.serving.Store(true)
	n.m.setLeader(true)
	n.log.Info("leadership taken", "node", n.cfg.ID, "term", r.CurrentTerm())
	defer func() {
		n.serving.Store(false)
		n.m.setLeader(false)
		n.log.Info("leadership ended", "node", n.cfg.ID, "term", r.CurrentTerm())
	}()
	var wg sync.WaitGroup
	defer wg.Wait()
	if n.cfg.Lead != nil {
		wg.Go(func() { n.cfg.Lead(ctx) })
	}
	wg.Go(func() { n.pruneTombstones(ctx) })
	n.reconcileRoster(ctx, r)
}

// settledFactor is how many periods the leader waits where nothing is on its way: no learner, no dead voter, no change
// that failed.
const settledFactor = 10

// reconcileRoster moves raft's configuration towards the roster, each period and whenever the state changes.
func (n *Node) reconcileRoster(ctx context.Context, r *raft.Raft) {
	changed := n.Watch(ctx)
	next := time.NewTimer(n.cfg.Timing.Reconcile)
	defer next.Stop()
	rec := newReconciler(n, r)
	var roster []state.Member
	for ctx.Err() == nil {
		rec.observeLearners(ctx)
		rec.applyChanges(ctx)
		period := n.cfg.Timing.Reconcile
		if rec.isSettled() {
			period *= settledFactor
		}
		next.Reset(period)
		n.checkPace() // it goes by the members
		roster = n.View().Members()
		for wait := true; wait; {
			select {
			case <-ctx.Done():
				return
			case <-next.C:
				wait = false
			case <-changed:
				wait = sameMembers(roster, n.View().Members()) // keys change far more often
			}
		}
	}
}

func sameMembers(a, b []state.Member) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// pruneTombstones forgets deletions that are older than TombstoneAge.
func (n *Node) pruneTombstones(ctx context.Context) {
	if n.cfg.TombstoneAge < 0 {
		return
	}
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n.pruneOnce(ctx)
	}
}

func (n *Node) pruneOnce(ctx context.Context) {
	if n.View().Tombstones() == 0 {
		return
	}
	before := n.cfg.Now().Add(-n.cfg.TombstoneAge).UnixMilli()
	if _, err := n.Propose(ctx, state.TombstonesPrune{Before: before, Audit: state.Audit{Cause: "age"}}); err != nil {
		n.log.Warn("pruning tombstones failed", "err", err)
	}
}
