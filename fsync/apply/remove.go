package apply

import (
	"fmt"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// remove takes a file or a symlink out of the slot.
func (s *Switcher) remove(i int, at slotfs.Place, op *Op) error {
	taken := s.taken(i)
	now, err := at.Dir.Stat(at.Name)
	if slotfs.Gone(err) || err == nil && op.Was != nil && !now.Unchanged(*op.Was) {
		if err := s.recoverFar(at, op); err != nil {
			return err
		}
	}
	switch {
	case slotfs.Gone(err) && edited(taken, op): // an earlier run was cut off
		return s.placed(op, s.giveBack(taken, at, op, s.moveBack))
	case slotfs.Gone(err), err == nil && op.Early && now.Type == tree.Dir: // an earlier run has done it
		return s.settle(i, op)
	case err != nil:
		return err
	case !op.Known || !now.Unchanged(*op.Was):
		return s.left(i, op)
	}
	if err := s.step(); err != nil {
		return err
	}
	if err := slotfs.Move(at, taken); far(err) {
		return s.removeFar(at, op)
	} else if slotfs.Gone(err) {
		return nil
	} else if err != nil {
		return err
	}
	if edited(taken, op) {
		return s.placed(op, s.giveBack(taken, at, op, s.moveBack))
	}
	return s.settle(i, op)
}

func (s *Switcher) taken(i int) slotfs.Place {
	return slotfs.Place{Dir: s.Area.Stage, Name: fmt.Sprintf("removed.%d", i)}
}

// settle finishes a removal: what was taken out, now or by an earlier run, is displaced.
func (s *Switcher) settle(i int, op *Op) error {
	switch {
	case op.Verb == Remove:
		s.out.Removed++
		return s.displace(s.taken(i), op)
	case op.Early: // an earlier run may have put the directory aside
		return s.noteAside(slotfs.Place{Dir: s.Area.Aside, Name: op.AsideID}, op, notEmpty)
	}
	return nil
}
