package roots

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/fsync/apply"
	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// ErrEdited says that a file is not, or not for sure, as the cluster has it.
var ErrEdited = errors.New("there is an edit that the cluster has not accepted yet")

// ErrNoConflict says that this node does not have such a conflict.
var ErrNoConflict = errors.New("no such conflict on this node")

// errNotFound says that what was put aside is in none of the places where it may be.
func (s *Store) errNotFound(c Conflict) error {
	if st := s.findSlot(c.Slot); st != nil && st.unavailable != "" {
		return fmt.Errorf("it is not available now, and %s is not replicated: %s", st.Dir, st.unavailable)
	}
	return fmt.Errorf("it is no longer at %s: %w", c.Kept, fs.ErrNotExist)
}

// Drop removes what was put aside.
func (s *Store) Drop(ctx context.Context, id string) error {
	return s.withConflict(ctx, id, func(_ context.Context, c Conflict) error {
		copies := s.findCopies(c)
		if err := s.errNotFound(c); len(copies) == 0 && !errors.Is(err, fs.ErrNotExist) { // it may come back with a mount
			return fmt.Errorf("drop conflict: %w", err)
		}
		for _, path := range copies {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("drop conflict: %w", err)
			}
		}
		s.mu.Lock()
		delete(s.conflict, id)
		n := len(s.conflict)
		s.mu.Unlock()
		s.metrics.conflicts.Set(float64(n))
		return s.db.put(pair{bucketConflicts, []byte(id), nil})
	})
}

// Resolve makes what was put aside live again, as a local edit, in place of what is there now. That must be as the
// cluster has it, and is displaced; an edit that this node has not proposed yet is proposed first, and refused where
// that is not possible.
func (s *Store) Resolve(ctx context.Context, id string) error {
	return s.withConflict(ctx, id, func(ctx context.Context, c Conflict) error {
		area, err := s.bringHome(c)
		if err != nil {
			return fmt.Errorf("restore %q: %w", c.Path, err)
		}
		defer area.Close()
		plan, err := s.planRestore(c, area)
		if errors.Is(err, ErrEdited) { // which may be agreed on by now
			s.dirty = true
			if err := s.round(ctx); err != nil {
				return fmt.Errorf("propose the edits here before %q is restored: %w", c.Path, err)
			}
			plan, err = s.planRestore(c, area)
		}
		if err == nil {
			err = s.restoreAside(ctx, c, plan, area)
		}
		if err != nil {
			return fmt.Errorf("restore %q: %w", c.Path, err)
		}
		if err := s.round(ctx); err != nil {
			return fmt.Errorf("%q is restored, but not proposed: %w", c.Path, err)
		}
		return nil
	})
}

// withConflict has the loop do something with what was put aside, when no switch is under way.
func (s *Store) withConflict(ctx context.Context, id string, do func(context.Context, Conflict) error) error {
	return s.inLoop(ctx, func(ctx context.Context) error {
		if err := errors.Join(s.finishSwitches(ctx), s.saveBase()); err != nil {
			return err
		}
		c, ok := s.conflictOf(id)
		if !ok {
			return fmt.Errorf("%w: %s", ErrNoConflict, id)
		}
		return do(ctx, c)
	})
}

// bringHome has what was put aside in the area that its slot has now, and returns that.
func (s *Store) bringHome(c Conflict) (*apply.Area, error) {
	copies, st := s.findCopies(c), s.findSlot(c.Slot)
	switch {
	case len(copies) == 0:
		return nil, s.errNotFound(c)
	case st == nil:
		return nil, fmt.Errorf("%s is no longer in the configuration of this node's master; it is kept as %s", c.Slot,
			copies[0])
	}
	area, err := apply.OpenArea(s.cfg.StateDir, st.Name, st.Dir)
	if err != nil {
		return nil, err
	}
	if err := s.gatherCopies(c, copies, area); err != nil {
		area.Close()
		return nil, err
	}
	return area, nil
}

// gatherCopies makes one copy of several, in an area.
func (s *Store) gatherCopies(c Conflict, copies []string, area *apply.Area) error {
	home := filepath.Join(area.Path, "aside", c.ID)
	if _, err := os.Lstat(home); slotfs.Gone(err) {
		if err := area.TakeAside(copies[0], s.cfg.UID, s.cfg.GID); err != nil {
			return fmt.Errorf("bring it from %s: %w", copies[0], err)
		}
	}
	kept, err := os.Lstat(home)
	if err != nil {
		return err
	}
	for _, path := range copies {
		if other, err := os.Lstat(path); err != nil || os.SameFile(kept, other) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) conflictOf(id string) (Conflict, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.conflict[id]
	return c, ok
}

// planRestore plans how what was put aside gets to where it was, making directories as needed. It returns ErrEdited if
// there is something that the cluster does not have, as far as the last scan has seen.
func (s *Store) planRestore(c Conflict, area *apply.Area) (apply.Plan, error) {
	aside, err := area.Aside.Stat(c.ID)
	if err != nil {
		return apply.Plan{}, err
	}
	p := apply.Plan{Slot: c.Slot}
	op := apply.Op{
		Verb: apply.Restore, Path: c.Path, Entry: tree.Entry{Type: aside.Type, Mode: aside.Mode}, Known: true,
		Stage: c.ID, StageIno: aside.Ino, StageMod: aside.Mtime,
	}
	for i := range c.Path {
		if c.Path[i] != '/' {
			continue
		}
		dir, err := area.Live.Walk(c.Path[:i])
		switch {
		case err == nil:
			_ = dir.Close()
		case errors.Is(err, fs.ErrNotExist):
			p.Ops = append(p.Ops, apply.Op{Verb: apply.MakeDir, Path: c.Path[:i],
				Entry: tree.Entry{Type: tree.Dir, Mode: 0o755}})
		default:
			return p, err
		}
	}
	if len(p.Ops) == 0 {
		if op.Was, err = statBelow(area.Live, c.Path); err != nil {
			return p, err
		}
	}
	if op.Was != nil {
		if op.Was.Type == tree.Dir {
			return p, errors.New("a directory is there now")
		}
		root, err := tree.ReadRoot(s, s.base.Root)
		if err != nil {
			return p, err
		}
		st := s.findSlot(c.Slot)
		agreed, live := tree.Lookup(s, root[c.Slot], c.Path), tree.Lookup(s, st.dir, c.Path)
		if agreed == nil || !agreed.Equal(live) || !st.index[c.Path].Fresh(*op.Was) {
			return p, ErrEdited
		}
		op.Old = *agreed
	}
	p.Ops = append(p.Ops, op)
	return p, nil
}

// statBelow returns what is at a path; nil: nothing.
func statBelow(top *slotfs.Dir, path string) (*slotfs.Stat, error) {
	dir, name, err := top.Parent(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	st, err := dir.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &st, err
}

// restoreAside carries out a plan of planRestore, as a switch: after a crash the next start completes it.
func (s *Store) restoreAside(ctx context.Context, c Conflict, p apply.Plan, area *apply.Area) error {
	j := &journal{Base: s.base.clone(), Plans: []apply.Plan{p}, Began: time.Now(), here: true}
	if err := s.db.put(pair{bucketMeta, keyJournal, j}); err != nil {
		return err
	}
	s.pending = j
	err := s.carryOut(ctx, j, map[SlotName]*apply.Area{c.Slot: area})
	if err != nil && apply.Untouched(area, &p.Ops[len(p.Ops)-1]) { // it is for the operator to try again
		s.pending = nil
		return errors.Join(err, s.db.put(pair{bucketMeta, keyJournal, nil}))
	}
	if _, still := s.conflictOf(c.ID); err == nil && still {
		return ErrEdited
	}
	return err
}
