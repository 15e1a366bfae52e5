package apply

import (
	"errors"
	"fmt"
	"io/fs"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// editedInstant is why an edit is put aside that came at the very moment of a switch.
const editedInstant = "edited while it was replaced"

// noteLeft lets a path be as an operator has made it, and takes care of what an earlier run has taken out there.
func (s *Switcher) noteLeft(i int, op *Op) error {
	s.noteKept(op)
	switch op.Verb {
	case Remove:
		return s.displaceFile(s.taken(i), op)
	case Place, Restore:
		staged := s.staged(op)
		if st, err := staged.Dir.Stat(staged.Name); err == nil && st.Ino != op.StageIno {
			return s.displaceFile(staged, op)
		}
		return s.displaceFile(s.former(op), op)
	}
	return nil
}

// displaceFile takes what a switch has taken out of the slot to where it is kept. There may be nothing.
func (s *Switcher) displaceFile(from slotfs.Place, op *Op) error {
	if op.Was == nil {
		return nil
	}
	st, err := from.Dir.Stat(from.Name)
	if err != nil && !slotfs.Gone(err) {
		return err
	}
	gone := err != nil
	if !gone {
		if err := s.runHook(); err != nil {
			return err
		}
	}
	switch aside := s.editedAside(op); {
	case op.Aside != "":
		return s.putAside(from, slotfs.Place{Dir: s.Area.Aside, Name: op.AsideID}, op, op.Aside)
	case !gone && !st.Unchanged(*op.Was), gone && isThere(aside):
		return s.putAside(from, aside, op, editedInstant)
	case op.Old.Type == tree.File:
		to := slotfs.Place{Dir: s.Area.Keep, Name: op.Old.Content().String()}
		if !gone {
			err = slotfs.Replace(from, to)
		}
		if err == nil || gone && isThere(to) {
			s.out.Displaced = append(s.out.Displaced, op.Old)
		}
	case !gone && st.Type != tree.Dir:
		err = from.Dir.Remove(from.Name)
	}
	if gone { // an earlier run has moved it, or an operator has removed it
		return nil
	}
	return err
}

// putAside moves something aside, or notes that earlier runs have done it: after each of them an operator may have made
// something else at the path, which gets a name of its own.
func (s *Switcher) putAside(from, to slotfs.Place, op *Op, reason string) error {
	err := slotfs.Move(from, to)
	for at, n := to, 1; errors.Is(err, fs.ErrExist); n++ {
		at.Name = nameAgain(to.Name, n)
		err = slotfs.Move(from, at)
	}
	if err != nil && !slotfs.Gone(err) {
		return err
	}
	return s.noteAside(to, op, reason)
}

// nameAgain is the name of what is put aside at an operation after something else was.
func nameAgain(name string, n int) string { return fmt.Sprintf("%s.%d", name, n) }

// noteAside tells of what was put aside, if there was anything.
func (s *Switcher) noteAside(to slotfs.Place, op *Op, reason string) error {
	for at, n := to, 1; ; n++ {
		st, err := at.Dir.Stat(at.Name)
		if slotfs.Gone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		a := Aside{ID: at.Name, Path: op.Path, Reason: reason, Type: st.Type}
		if st.Type == tree.File {
			a.Size = st.Size
		}
		s.out.Aside = append(s.out.Aside, a)
		at.Name = nameAgain(to.Name, n)
	}
}

// editedAside is where an edit goes that came between two looks. Its name is the same however often a switch is
// repeated.
func (s *Switcher) editedAside(op *Op) slotfs.Place {
	h := tree.Sum(fmt.Appendf(nil, "%s\x00%d\x00%d\x00%d", op.Path, op.Was.Ino, op.Was.Mtime, op.StageIno))
	return slotfs.Place{Dir: s.Area.Aside, Name: "E" + h.String()[:25]}
}

func isThere(p slotfs.Place) bool {
	_, err := p.Dir.Stat(p.Name)
	return err == nil
}
