package roots

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"saltclusterd/fsync/apply"
	"saltclusterd/fsync/scan"
	"saltclusterd/fsync/tree"
)

// Problems of a slot whose directory is not the one it was, perhaps only because a file system is not mounted, or is
// mounted again.
var (
	errEmptied = errors.New("its directory was replaced by an empty one (roots refill fills it; sync_roots --accept makes that a deletion)")
	errStrange = errors.New("another file system with other files is in its place " +
		"(roots refill restores the cluster's content; sync_roots --accept gives the cluster the present content)")
)

// ErrNotReplaced says that there is nothing to refill.
var ErrNotReplaced = errors.New("not a directory that is excluded because it was replaced")

// ErrAcceptDry says that what is left alone is accepted or not: to compare it, it would have to be taken for what is
// live.
var ErrAcceptDry = errors.New("an excluded directory cannot be accepted in a dry run")

// replaced says why a slot that had files is not to be believed: it is another directory now, without any; or on
// another file system, with none of the files that were there, and not what was last put there. Whoever renames a
// directory into its place stays on the same file system; and one that is mounted anew may have another number, but its
// files have theirs.
func (s *Store) replaced(st *slotState, res *scan.Result, ident dirIdent) error {
	was, ok := s.base.Idents[st.Name]
	if !ok || was == ident {
		return nil
	}
	base := s.base.Slots[st.Name]
	if a, ok := s.away[st.Name]; ok { // a switch that was cut off was to put that there
		base = a.Base
	}
	switch {
	case res.Dir == base: // or the next edit would be on an unknown file system
		s.noteIdent(st, ident)
		return nil
	case s.hasHead(st, res.Dir), res.Files > 0 && was.Dev == ident.Dev:
		return nil
	case res.Files > 0 && anyKept(st.index, res.Index):
		s.noteIdent(st, ident)
		return nil
	}
	if files, _, err := tree.Count(s.db, base); err != nil || files == 0 {
		return nil
	}
	if res.Files == 0 {
		return errEmptied
	}
	return errStrange
}

func (s *Store) noteIdent(st *slotState, ident dirIdent) {
	next := s.base.clone()
	next.Idents[st.Name] = ident
	s.setBase(next)
}

// hasHead says whether a slot is what the cluster has now: an accepted one, say, that had to be confirmed.
func (s *Store) hasHead(st *slotState, dir Hash) bool {
	head, ok := s.cfg.Log.Head()
	if !ok {
		return false
	}
	root, err := tree.ReadRoot(s, head.Root)
	return err == nil && root[st.Name] == dir
}

// remounted says whether a slot has another directory than at the last look: a mount comes and goes without a hint of
// the kernel's.
func (s *Store) remounted() bool {
	for _, st := range s.slots {
		if s.identOf(st) != st.seen {
			return true
		}
	}
	return false
}

// anyKept says whether one file at least is the one that it was, whatever the number of its file system.
func anyKept(was, is scan.Index) bool {
	for path, item := range was {
		now := is[path]
		if now == nil || item.Type != tree.File {
			continue
		}
		st := now.Stat
		st.Dev = item.Dev
		if item.Unchanged(st) {
			return true
		}
	}
	return false
}

// Refill gives a slot that was replaced (a new disk, say) what the cluster has, as if it came to the cluster now: what
// is in the directory and differs is put aside. The directory is named by whoever knows that it is the right one.
func (s *Store) Refill(ctx context.Context, dir string) error {
	if err := s.awaitReady(ctx); err != nil {
		return err
	}
	return s.inLoop(ctx, func(ctx context.Context) error {
		if err := errors.Join(s.endSwitch(), s.finishSwitches(ctx)); err != nil {
			return err
		}
		slots, err := s.replacedIn(ctx, dir)
		if err != nil {
			return err
		}
		next := s.base.clone()
		if err := s.supersedeAll(slots); err != nil {
			return err
		}
		for _, st := range slots {
			delete(next.Slots, st.Name)
			delete(next.Idents, st.Name)
		}
		s.log.Info("slot is refilled", "path", dir)
		s.setBase(next)
		s.dirty = true
		for range maxPasses {
			if err := s.catchUp(ctx); !errors.Is(err, errHeadMoved) {
				return err
			}
		}
		return errHeadMoved
	})
}

// supersedeAll puts aside what switches have taken out of directories that were replaced.
func (s *Store) supersedeAll(slots []*slotState) error {
	var plans []apply.Plan
	for _, st := range slots {
		if a, ok := s.away[st.Name]; ok {
			plans = append(plans, a.Plan)
		}
	}
	areas, err := s.openAreas(plans)
	if err != nil {
		return err
	}
	defer closeAreas(areas)
	for slot, area := range areas {
		if err := s.supersede(slot, area); err != nil {
			return err
		}
	}
	return nil
}

// replacedIn looks which slots of a directory are left alone because another is in its place: one at least.
func (s *Store) replacedIn(ctx context.Context, dir string) (slots []*slotState, err error) {
	if s.pending == nil { // which a round completes first
		if err := s.scanAll(ctx); err != nil {
			return nil, err
		}
	}
	for _, st := range s.slots {
		if st.Dir == filepath.Clean(dir) && st.replaced {
			slots = append(slots, st)
		}
	}
	if len(slots) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNotReplaced)
	}
	return slots, nil
}

// makeDir makes a slot's directory, as the master's user has it.
func (s *Store) makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if s.cfg.UID < 0 && s.cfg.GID < 0 {
		return nil
	}
	return os.Chown(dir, s.cfg.UID, s.cfg.GID)
}

// makeMissing makes the directories that have never been on this node and in which the cluster has something. Where
// there was one, a directory that is missing is a file system that is not mounted, or was removed on purpose.
func (s *Store) makeMissing(root tree.Root) (made bool) {
	for _, st := range s.slots {
		_, had := s.base.Idents[st.Name]
		if _, known := s.base.Slots[st.Name]; !st.missing || had || known {
			continue
		}
		if files, _, err := tree.Count(s, root[st.Name]); root[st.Name].IsZero() || err != nil || files == 0 {
			continue
		}
		if err := s.makeDir(st.Dir); err != nil {
			if !st.unmade {
				s.log.Warn("directory of the roots not made", "path", st.Dir, "err", err)
			}
			st.unmade = true
			continue
		}
		s.log.Info("directory of the roots created, because the cluster has content for it", "path", st.Dir)
		made, st.unmade = true, false
	}
	return made
}
