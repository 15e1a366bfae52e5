package returns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/spool"
)

// Path is where a node takes batches on its peer port.
const Path = "/v1/returns"

// maxServed bounds the batches that are taken at a time, in bytes: two of the largest.
const maxServed = 2 * MaxBatch

// Handler takes batches of returns that another node has kept. It answers 200 when all of them are on disk; anything
// else means that the batch is to come again. from tells which node asks.
func (s *Service) Handler(from func(context.Context) (node.ID, bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, ok := from(r.Context())
		if !ok || r.Method != http.MethodPost {
			http.Error(w, "not a member", http.StatusForbidden)
			return
		}
		size := r.ContentLength
		if size < 0 || size > MaxBatch {
			http.Error(w, "the length is missing or too large", http.StatusLengthRequired)
			return
		}
		defer s.served.Add(-size)
		if s.served.Add(size) > maxServed {
			http.Error(w, "too many batches at a time", http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBatch))
		if err != nil {
			http.Error(w, "batch not readable", http.StatusRequestEntityTooLarge)
			return
		}
		batch, err := parseBatch(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := s.acceptBatch(r.Context(), peer, batch); err != nil {
			s.c.Logger.Warn("returns of another node not taken", "node", peer, "err", err)
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
}

// acceptBatch takes all records at once, so that they share an fsync. One that fails does not end the others: what was
// taken of a batch that comes again is recognised.
func (s *Service) acceptBatch(ctx context.Context, peer node.ID, batch []spool.Record) error {
	var g errgroup.Group
	var known atomic.Bool
	sync := s.stored.newSync()
	for _, rec := range batch {
		peek, err := checkRecord(rec)
		if err != nil {
			g.Go(func() error { return s.setAside(rec, fmt.Errorf("from %s: %w", peer, err)) })
			continue
		}
		if cut, _ := saltwire.CutJID(rec.JID); cut != peek.JID || cut == "" { // else a signed return of a queued job
			rec.JID = peek.JID
		}
		rec.From = string(peer)
		if rec.Kind&asideKind != 0 {
			g.Go(func() error { return s.unanswered.inheritReturn(peer, rec) })
			continue
		}
		if rec.Kind&aheadKind != 0 {
			g.Go(func() error { return s.fileAhead(ctx, &rec) })
			continue
		}
		g.Go(func() error {
			err := s.acceptOne(ctx, rec, peek.Cmd)
			if errors.Is(err, errKnown) {
				known.Store(true)
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil || !known.Load() {
		return err
	}
	return sync(ctx)
}

// acceptOne takes a return as this node's own, or to be kept for the node it was kept for where it comes from.
func (s *Service) acceptOne(ctx context.Context, rec spool.Record, cmd string) error {
	to := node.ID(rec.To)
	if to == "" || to == s.c.Self {
		return s.acceptRecord(ctx, rec, cmd)
	}
	switch s.c.Peers.Standing(to) {
	case Removed:
		return s.acceptRecord(ctx, rec, cmd)
	case Unknown:
		return errUnknown
	}
	return awaitDone(ctx, func(done func(error)) { s.keepFor(to, rec, done) })
}

// setAside keeps a record that a minion has been answered for and that no code here understands, until an operator
// decides.
func (s *Service) setAside(rec spool.Record, err error) error {
	rec.Kind = 0
	if kept := s.unanswered.putReturn(rec, err, maxAsked); kept != nil {
		return fmt.Errorf("%w (and not put aside: %w)", err, kept)
	}
	s.metrics.countFailed(ErrMalformed)
	s.c.Logger.Error("unreadable return put aside for an operator", "minion", rec.Minion, "jid", rec.JID,
		"err", err)
	return nil
}

var errUnknown = errors.New("returns: this node does not know yet whether that node belongs to the cluster")
