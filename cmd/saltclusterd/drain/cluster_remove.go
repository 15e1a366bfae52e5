package drain

import (
	"context"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
)

const (
	// handOverWithin is how long a node may take to hand returns over: its master may be working on one of them.
	handOverWithin = time.Minute
	// emptyGrace is how much longer than its drain takes a node that is to be removed is waited for.
	emptyGrace = 15 * time.Second
)

// Empty drains a node that is to be removed, and waits until it has handed over the returns that it keeps. A node
// that does not answer is left alone; what fails is reported as progress, since the node is removed all the same.
func (c *Cluster) Empty(ctx context.Context, id node.ID, p admin.Progress) {
	if !c.hasReports(id) || !c.cfg.Routes().OthersServe(id) {
		return
	}
	if _, err := c.fetchReport(ctx, id); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DrainTime+emptyGrace)
	defer cancel()
	err := c.sendOptions(ctx, id, Options{}) // instead of those of a drain that was never carried out
	if err == nil {
		err = c.Decide(ctx, id, true)
	}
	if err == nil {
		err = c.awaitPhase(ctx, id, Drained, false, p)
	}
	if err != nil {
		p("drain", "not all of its minions were handed over: "+err.Error())
		return
	}
	if err := c.awaitReturns(ctx, id, p); err != nil {
		p("returns", "not all of the returns that it keeps were handed over: "+err.Error())
	}
}

// awaitReturns waits until a drained node has handed its returns to other nodes (returns.Peers.NextKeeper) or to its
// master.
func (c *Cluster) awaitReturns(ctx context.Context, id node.ID, p admin.Progress) error {
	for {
		r, err := c.fetchReport(ctx, id)
		if err != nil || r.Kept == 0 && r.Deferred == 0 && r.Unstored == 0 {
			return err
		}
		p("returns", r.sentence(id))
		if !backoff.Sleep(ctx, reportPoll) {
			return context.Cause(ctx)
		}
	}
}

// CountAside returns how many returns a node has that its master does not answer; 0 if it does not report it.
func (c *Cluster) CountAside(ctx context.Context, id node.ID) int {
	if !c.hasReports(id) {
		return 0
	}
	r, err := c.fetchReport(ctx, id)
	if err != nil {
		return 0
	}
	return r.Aside
}

// hasReports says whether a node serves minions and can be asked about its drain.
func (c *Cluster) hasReports(id node.ID) bool {
	m, ok := c.cfg.Log.View().Member(id)
	return ok && !m.Witness && c.cfg.Alive(id)
}

// HandOverAside makes a node hand over the returns that its master does not answer. It returns how many are left,
// and why.
func (c *Cluster) HandOverAside(ctx context.Context, id node.ID) (left int, why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, handOverWithin)
	defer cancel()
	var h handedOver
	if id == c.cfg.Self {
		h = c.cfg.Own().handOverReturns(ctx)
	} else {
		h, err = handOverRPC.Call(ctx, c.cfg.Client, id, peerrpc.None{})
	}
	return h.Left, h.Why, err
}
