package roots

import (
	"bytes"
	"errors"

	"go.etcd.io/bbolt"

	"saltclusterd/fsync/tree"
)

// collectAfter is how many switches and proposals pass between two collections.
const collectAfter = 100

// collect removes the objects that no revision in the log, no base and nothing live leads to.
func (s *Store) collect() error {
	if err := s.db.flush(); err != nil {
		return err
	}
	used := map[Hash]bool{}
	roots := []Hash{s.base.Root, s.liveRoot}
	for _, r := range s.cfg.Log.Revisions() {
		roots = append(roots, r.Root)
	}
	for _, p := range s.openProposals() {
		roots = append(roots, p.Root)
	}
	for _, root := range roots {
		if err := s.mark(root, used); err != nil {
			return err
		}
	}
	for _, dir := range s.base.Slots {
		if err := s.markDir(dir, used); err != nil {
			return err
		}
	}
	for _, a := range s.away {
		if err := s.markDir(a.Base, used); err != nil {
			return err
		}
	}
	for _, st := range s.slots {
		if err := s.markDir(st.spell.From, used); err != nil {
			return err
		}
	}
	removed, err := s.db.sweep(used)
	if removed > 0 {
		s.log.Debug("old directories forgotten", "removed", removed)
	}
	return err
}

func (s *Store) mark(root Hash, used map[Hash]bool) error {
	slots, err := tree.ReadRoot(s, root)
	if errors.Is(err, tree.ErrNoObject) { // never fetched
		return nil
	}
	if err != nil {
		return err
	}
	used[root] = true
	for _, dir := range slots {
		if err := s.markDir(dir, used); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) markDir(dir Hash, used map[Hash]bool) error {
	if dir.IsZero() || used[dir] {
		return nil
	}
	entries, err := tree.ReadDir(s, dir)
	if errors.Is(err, tree.ErrNoObject) {
		return nil
	}
	if err != nil {
		return err
	}
	used[dir] = true
	for i := range entries {
		if entries[i].Type != tree.Dir {
			continue
		}
		if err := s.markDir(entries[i].Object, used); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes the objects that are not used.
func (d *db) sweep(used map[Hash]bool) (removed int, err error) {
	err = d.b.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketObjects)
		var gone [][]byte
		err := b.ForEach(func(k, _ []byte) error {
			if len(k) != len(Hash{}) || !used[Hash(k)] {
				gone = append(gone, bytes.Clone(k))
			}
			return nil
		})
		for _, k := range gone {
			if err := b.Delete(k); err != nil {
				return err
			}
		}
		removed = len(gone)
		return err
	})
	return removed, err
}
