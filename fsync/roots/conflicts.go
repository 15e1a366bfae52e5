package roots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"saltclusterd/fsync/apply"
	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// ErrNoConflict says that this node does not have such a conflict.
var ErrNoConflict = errors.New("no such conflict on this node")

// Conflicts lists what was put aside on this node, oldest first.
func (s *Store) Conflicts() []Conflict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.conflict), func(a, b Conflict) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Slot.String(), b.Slot.String()), cmp.Compare(a.Path, b.Path))
	})
}

// Drop removes what was put aside.
func (s *Store) Drop(ctx context.Context, id string) error {
	return s.withConflict(ctx, id, func(c Conflict, area *apply.Area) error {
		if err := os.RemoveAll(filepath.Join(area.Path, "aside", c.ID)); err != nil {
			return fmt.Errorf("drop conflict: %w", err)
		}
		return nil
	})
}

// Resolve makes what was put aside live again in place of what is there now, which is displaced. It becomes a local
// edit.
func (s *Store) Resolve(ctx context.Context, id string) error {
	err := s.withConflict(ctx, id, func(c Conflict, area *apply.Area) error {
		if err := s.putBack(c, area); err != nil {
			return fmt.Errorf("resolve conflict: %q: %w", c.Path, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.inLoop(ctx, func(ctx context.Context) error {
		s.dirty = true
		return s.round(ctx)
	})
}

func (s *Store) withConflict(ctx context.Context, id string, do func(Conflict, *apply.Area) error) error {
	return s.inLoop(ctx, func(context.Context) error {
		s.mu.Lock()
		c, ok := s.conflict[id]
		s.mu.Unlock()
		st := s.slot(c.Slot)
		if !ok || st == nil {
			return fmt.Errorf("%w: %s", ErrNoConflict, id)
		}
		area, err := apply.OpenArea(s.cfg.StateDir, st.Name, st.Dir)
		if err != nil {
			return err
		}
		defer area.Close()
		if err := do(c, area); err != nil {
			return err
		}
		s.mu.Lock()
		delete(s.conflict, id)
		n := len(s.conflict)
		s.mu.Unlock()
		s.metrics.conflicts.Set(float64(n))
		return s.db.put(pair{bucketConflicts, []byte(id), nil})
	})
}

// putBack renames what was put aside to where it was, making directories as needed.
func (s *Store) putBack(c Conflict, area *apply.Area) error {
	dir, err := area.Live.Sub(".")
	if err != nil {
		return err
	}
	names := strings.Split(c.Path, "/")
	for _, n := range names[:len(names)-1] {
		if err := tree.CheckName(n); err != nil {
			return errors.Join(err, dir.Close())
		}
		if err := dir.Mkdir(n, 0o755); err == nil && s.cfg.UID >= 0 {
			err = dir.Chown(n, s.cfg.UID, s.cfg.GID)
			if err != nil {
				return errors.Join(err, dir.Close())
			}
		} else if err != nil && !errors.Is(err, fs.ErrExist) {
			return errors.Join(err, dir.Close())
		}
		sub, err := dir.Sub(n)
		_ = dir.Close()
		if err != nil {
			return err
		}
		dir = sub
	}
	defer dir.Close()
	from, to := slotfs.Place{Dir: area.Aside, Name: c.ID}, slotfs.Place{Dir: dir, Name: names[len(names)-1]}
	if err := slotfs.Move(from, to); !errors.Is(err, fs.ErrExist) {
		return err
	}
	if st, err := dir.Stat(to.Name); err != nil || st.Type == tree.Dir {
		return errors.Join(errors.New("there is a directory now"), err)
	}
	return slotfs.Replace(from, to) // what was there is the cluster's: the other nodes displace it
}
