package returns

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/spool"
)

// PathLeaving is where a node that is about to leave the cluster is told to hand over what was put aside.
const PathLeaving = Path + "/leaving"

// asideKind marks a record of a batch that was put aside where it comes from. The bits below say how often a master has
// had it without an answer, maxAsked at most. A node that does not know of it takes it for any other return, and its
// master gets it at once.
const asideKind = 0x80

// handers is how many are handed over at a time.
const handers = 4

var errUnsound = errors.New("returns: its content does not match its index entry")

// HandOver gives what was put aside here to other nodes, each to the one that is responsible for its job when this one
// is gone; there it is also put aside, with its tries so far. It returns how many are left, and why: damaged ones
// always are.
func (s *Service) HandOver(ctx context.Context) (left int, err error) {
	u := s.unanswered
	select {
	case u.turn <- struct{}{}: // the master has none of them meanwhile
		defer func() { <-u.turn }()
	case <-ctx.Done():
		return s.Aside(), ctx.Err()
	}
	var g errgroup.Group // without a context: one that cannot be handed over must not keep the others here
	g.SetLimit(handers)
	for _, one := range u.listReturns() {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return u.handOver(ctx, one.ID)
		})
	}
	err = g.Wait()
	if left = s.Aside(); left == 0 {
		err = nil // dropped meanwhile
	}
	return left, err
}

// handOver gives one to another node, which has it on disk before it is removed here. Killed in between, both have it.
func (u *unanswered) handOver(ctx context.Context, id string) error {
	rec, err := u.readReturn(id)
	if err == nil {
		_, err = checkRecord(rec)
	}
	if err != nil {
		return fmt.Errorf("return %s: %w", id, err)
	}
	to, ok := u.s.c.Peers.Successor(rec.JID)
	if !ok {
		return errNoOwner
	}
	rec.Kind = asideKind | uint8(min(u.askedFor(id), maxAsked))
	if _, err := u.s.sendBatch(ctx, to, []spool.Record{rec}); err != nil {
		return err
	}
	u.s.c.Logger.Info("return that was put aside is handed over", "minion", rec.Minion, "jid", rec.JID, "node", to)
	_, err = u.removeReturn(id)
	return err
}

// askedFor is how often the master has had one without an answer.
func (u *unanswered) askedFor(id string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if w := u.items[id]; w != nil {
		return w.asked
	}
	return 0
}

// inheritReturn takes one that was put aside on a node which is leaving.
func (u *unanswered) inheritReturn(from node.ID, rec spool.Record) error {
	asked := int(rec.Kind &^ asideKind)
	rec.Kind = 0
	if err := u.putReturn(rec, fmt.Errorf("it was put aside on %s, which has left the cluster", from),
		min(asked, maxAsked)); err != nil {
		return err
	}
	u.s.metrics.count("unanswered")
	u.s.c.Logger.Warn("return that was put aside on another node is taken over", "node", from, "minion", rec.Minion, "jid",
		rec.JID)
	return nil
}

// checkRecord says whether a record is the return of whom it is kept for.
func checkRecord(rec spool.Record) (saltwire.Peek, error) {
	peek, err := saltwire.PeekLoad(rec.Load)
	if err == nil && (!router.IsReturn(peek.Cmd) || peek.ID != rec.Minion || saltwire.ValidID(rec.Minion) != nil) {
		err = errUnsound
	}
	return peek, err
}
