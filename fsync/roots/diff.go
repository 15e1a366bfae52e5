package roots

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"saltclusterd/fsync/tree"
	"saltclusterd/gossip/node"
)

// Diff tells how what is live on another member differs from what is live here.
func (s *Store) Diff(ctx context.Context, other node.ID) ([]Change, error) {
	if s.run == nil {
		return nil, ErrOff
	}
	if err := s.inLoop(ctx, s.scanAll); err != nil {
		return nil, err
	}
	theirs, err := s.transfer.Live(ctx, other)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", other, err)
	}
	if theirs.IsZero() {
		return nil, fmt.Errorf("ask %s: it has not scanned its files yet", other)
	}
	if err := s.fetchObjects(ctx, other, theirs, true); err != nil {
		return nil, fmt.Errorf("fetch the tree of %s: %w", other, err)
	}
	s.mu.Lock()
	ours := s.liveRoot
	s.mu.Unlock()
	return s.diffRoots(ours, theirs)
}

// diffRoots lists the changes from one tree to another.
func (s *Store) diffRoots(from, to Hash) ([]Change, error) {
	a, err := tree.ReadRoot(s, from)
	if err != nil {
		return nil, err
	}
	b, err := tree.ReadRoot(s, to)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	var out []Change
	for _, slot := range slices.SortedFunc(maps.Keys(all), SlotName.Compare) {
		err := tree.Diff(s, a[slot], b[slot], func(c tree.Change) error {
			out = append(out, newChange(slot, c))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
