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

// errEdited says that a file is not, or not for sure, as the cluster has it.
var errEdited = errors.New(
	"there is an edit that the cluster has not agreed on: wait until it has, or sync the roots, and try again")

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
	return s.withConflict(ctx, id, func(_ context.Context, c Conflict, area *apply.Area) error {
		if err := os.RemoveAll(filepath.Join(area.Path, "aside", c.ID)); err != nil {
			return fmt.Errorf("drop conflict: %w", err)
		}
		return nil
	})
}

// Resolve makes what was put aside live again, as a local edit, in place of what is there now. That must be as the
// cluster has it, which keeps its content; an edit that this node has not proposed yet is proposed first, and refused
// where that is not possible.
func (s *Store) Resolve(ctx context.Context, id string) error {
	err := s.withConflict(ctx, id, func(ctx context.Context, c Conflict, area *apply.Area) error {
		if err := s.putBack(ctx, c, area); err != nil {
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

func (s *Store) withConflict(ctx context.Context, id string,
	do func(context.Context, Conflict, *apply.Area) error) error {
	return s.inLoop(ctx, func(ctx context.Context) error {
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
		if err := do(ctx, c, area); err != nil {
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
func (s *Store) putBack(ctx context.Context, c Conflict, area *apply.Area) error {
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
	return s.replaceAgreed(ctx, c, from, to)
}

// replaceAgreed moves from to to, where there is a file as the cluster has it. That file is unlinked, because the
// cluster's history has it.
func (s *Store) replaceAgreed(ctx context.Context, c Conflict, from, to slotfs.Place) error {
	s.dirty = true
	if err := s.round(ctx); err != nil {
		return fmt.Errorf("propose the edits here first: %w", err)
	}
	was, err := to.Dir.Stat(to.Name)
	if err != nil || was.Type == tree.Dir {
		return errors.Join(errors.New("there is a directory now"), err)
	}
	if err := s.look(ctx); err != nil {
		return err
	}
	root, err := tree.ReadRoot(s, s.base.Root)
	if err != nil {
		return err
	}
	st := s.slot(c.Slot)
	agreed, live := tree.Lookup(s, root[c.Slot], c.Path), tree.Lookup(s, st.dir, c.Path)
	if agreed == nil || !agreed.Equal(live) || !st.index[c.Path].Fresh(was) {
		return errEdited
	}
	switch err := slotfs.Exchange(from, to); {
	case errors.Is(err, slotfs.ErrNoExchange):
		if now, err := to.Dir.Stat(to.Name); err != nil || !now.Unchanged(was) {
			return errors.Join(errEdited, err)
		}
		return slotfs.Replace(from, to)
	case err != nil:
		return err
	}
	if now, err := from.Dir.Stat(from.Name); err != nil || !now.Unchanged(was) {
		return errors.Join(errEdited, err, slotfs.Exchange(from, to))
	}
	return from.Dir.Remove(from.Name)
}
