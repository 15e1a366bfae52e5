package roots

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"saltclusterd/fsync/content"
	"saltclusterd/fsync/tree"
)

// ErrNoRevision says that a revision is not kept any more, or never was.
var ErrNoRevision = errors.New("no such revision")

// Rollback proposes the tree of an old revision again. It fails when some of its content is nowhere any more.
func (s *Store) Rollback(ctx context.Context, number uint64) (Revision, error) {
	var out Revision
	err := s.inLoop(ctx, func(ctx context.Context) error {
		if err := s.catchUp(ctx); err != nil && !reasonToGoBack(err) {
			return err
		}
		rev, err := s.revision(number)
		if err != nil {
			return err
		}
		head, _ := s.cfg.Log.Head()
		if head.Root == rev.Root {
			out = head
			return nil
		}
		stats, err := s.rollbackStats(ctx, head, rev)
		if err != nil {
			return fmt.Errorf("roll back to revision %d: %w", number, err)
		}
		out, err = s.cfg.Log.Propose(ctx, Proposal{
			Parent: head.Number, Root: rev.Root, Kind: KindRollback, Stats: stats, Confirmed: true,
			Note: fmt.Sprintf("back to revision %d", number),
		})
		if err != nil {
			return fmt.Errorf("roll back to revision %d: %w", number, err)
		}
		return s.catchUp(ctx)
	})
	return out, err
}

// reasonToGoBack reports whether no node can follow the head: its content is available nowhere, or is not a valid tree.
func reasonToGoBack(err error) bool {
	return errors.Is(err, content.ErrUnavailable) || errors.Is(err, tree.ErrTooLarge) || errors.Is(err, tree.ErrMalformed)
}

func (s *Store) revision(number uint64) (Revision, error) {
	for _, r := range s.cfg.Log.Revisions() {
		if r.Number == number && r.State == StateApplied {
			return r, nil
		}
	}
	return Revision{}, fmt.Errorf("%w: %d", ErrNoRevision, number)
}

// rollbackStats makes sure that all of a revision can be had, and tells how it differs from the head.
func (s *Store) rollbackStats(ctx context.Context, head, rev Revision) (Stats, error) {
	if err := s.fetchObjects(ctx, rev.Author, rev.Root, true); err != nil {
		return Stats{}, err
	}
	to, err := tree.ReadRoot(s, rev.Root)
	if err != nil {
		return Stats{}, err
	}
	from, err := tree.ReadRoot(s, head.Root)
	if err != nil {
		from = tree.Root{}
	}
	var e edits
	needed := map[Hash]bool{}
	for slot, dir := range to {
		if err := e.compare(s, slot, from[slot], dir); err != nil {
			return Stats{}, err
		}
		err := tree.Walk(s, dir, func(_ string, t *tree.Entry) error {
			if t.Type != tree.Dir {
				e.stats.Files++
				e.stats.Bytes += t.Size()
			}
			for _, c := range t.Chunks {
				needed[c.Hash] = true
			}
			return nil
		})
		if err != nil {
			return Stats{}, err
		}
	}
	return e.stats, s.available(ctx, needed)
}

// available asks peers for what is not on this disk.
func (s *Store) available(ctx context.Context, needed map[Hash]bool) error {
	where := s.locations()
	for h := range needed {
		if _, ok := where[h]; ok {
			delete(needed, h)
		}
	}
	for _, p := range s.cfg.Peers.Members() {
		if len(needed) == 0 {
			return nil
		}
		if err := s.transfer.Have(ctx, p, slices.Collect(maps.Keys(needed)), func(h Hash) { delete(needed, h) }); err != nil {
			s.log.Debug("peer not asked for old content", "node", p, "err", err)
		}
	}
	if len(needed) > 0 {
		return fmt.Errorf("%d pieces of its content: %w", len(needed), content.ErrUnavailable)
	}
	return nil
}
