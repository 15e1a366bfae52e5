package apply

import (
	"fmt"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// removeEntry takes a file or a symlink out of the slot.
func (s *Switcher) removeEntry(i int, at slotfs.Place, op *Op) error {
	taken := s.taken(i)
	now, err := at.Dir.Stat(at.Name)
	if slotfs.Gone(err) || err == nil && op.Was != nil && !now.Unchanged(*op.Was) {
		if err := s.recoverFar(at, op); err != nil {
			return err
		}
	}
	switch {
	case slotfs.Gone(err) && isEdited(taken, op): // an earlier run was cut off
		return s.notePlaced(op, s.giveBack(taken, at, op, s.moveBack))
	case slotfs.Gone(err), err == nil && op.Early && now.Type == tree.Dir: // an earlier run has done it
		return s.settleRemoval(i, op)
	case err != nil:
		return err
	case !op.Known || !now.Unchanged(*op.Was):
		return s.noteLeft(i, op)
	}
	if err := s.runHook(); err != nil {
		return err
	}
	if err := slotfs.Move(at, taken); isFar(err) {
		return s.removeFar(at, op)
	} else if slotfs.Gone(err) {
		return nil
	} else if err != nil {
		return err
	}
	if isEdited(taken, op) {
		return s.notePlaced(op, s.giveBack(taken, at, op, s.moveBack))
	}
	return s.settleRemoval(i, op)
}

func (s *Switcher) taken(i int) slotfs.Place {
	return slotfs.Place{Dir: s.Area.Stage, Name: fmt.Sprintf("removed.%d", i)}
}

// settleRemoval finishes a removal: what was taken out, now or by an earlier run, is displaced.
func (s *Switcher) settleRemoval(i int, op *Op) error {
	switch {
	case op.Verb == Remove:
		s.out.Removed++
		return s.displaceFile(s.taken(i), op)
	case op.Early: // an earlier run may have put the directory aside
		return s.noteAside(slotfs.Place{Dir: s.Area.Aside, Name: op.AsideID}, op, notEmpty)
	}
	return nil
}
