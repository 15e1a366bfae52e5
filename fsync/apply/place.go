package apply

import (
	"errors"
	"io/fs"

	"saltclusterd/fsync/slotfs"
)

// placeEntry makes staged content live.
func (s *Switcher) placeEntry(i int, at slotfs.Place, op *Op) error {
	staged := s.staged(op)
	if op.Known && op.Was == nil { // most of a new tree: where there is nothing in the way, nothing need be looked at
		if err := s.runHook(); err != nil {
			return err
		}
		if slotfs.Move(staged, at) == nil {
			return s.notePlaced(op, nil)
		}
	}
	now, err := at.Dir.Stat(at.Name)
	if err != nil && !slotfs.Gone(err) {
		return err
	}
	if done, rerr := s.resumePlace(i, at, op, now, err == nil); done {
		return rerr
	}
	switch {
	case !op.Known, op.Was == nil && err == nil, op.Was != nil && (err != nil || !now.Unchanged(*op.Was)):
		s.noteKept(op)
		return s.recoverFar(at, op)
	}
	if err := s.runHook(); err != nil {
		return err
	}
	if op.Was == nil {
		err = slotfs.Move(staged, at)
		if errors.Is(err, fs.ErrExist) {
			s.noteKept(op)
			return nil
		}
	} else {
		err = s.exchangeEntries(staged, at, op)
	}
	if isFar(err) {
		err = s.placeFar(staged, at, op)
	}
	return s.notePlaced(op, err)
}

// notePlaced notes how placing something has ended.
func (s *Switcher) notePlaced(op *Op, err error) error {
	switch {
	case err == nil:
		s.out.Installed++
	case errors.Is(err, errEdited):
		s.noteKept(op)
		return nil
	}
	return err
}

// errEdited says that something was edited between the last look and the exchange.
var errEdited = errors.New("edited meanwhile")

func (s *Switcher) exchangeEntries(staged, at slotfs.Place, op *Op) error {
	err := slotfs.Exchange(staged, at)
	if errors.Is(err, slotfs.ErrNoExchange) {
		return s.twoSteps(staged, at, op)
	}
	if slotfs.Gone(err) {
		return errEdited
	}
	if err != nil {
		return err
	}
	if isEdited(staged, op) {
		return s.giveBack(staged, at, op, s.exchangeBack)
	}
	return s.displaceFile(staged, op)
}

// giveBack returns an edit that was taken out to where it was. Where that cannot be done any more, it is put aside.
func (s *Switcher) giveBack(from, at slotfs.Place, op *Op, by func(from, at slotfs.Place, op *Op) error) error {
	if err := s.runHook(); err != nil {
		return err
	}
	if err := by(from, at, op); slotfs.Gone(err) || errors.Is(err, fs.ErrExist) {
		if err := s.displaceFile(from, op); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	return errEdited
}

// exchangeBack makes an edit live again in place of what was placed. When there has been another edit since, that
// stays.
func (s *Switcher) exchangeBack(staged, at slotfs.Place, op *Op) error {
	if err := slotfs.Exchange(staged, at); err != nil {
		return err
	}
	if isStaged(staged, op) {
		return nil
	}
	if err := slotfs.Exchange(staged, at); err != nil {
		return err
	}
	return s.displaceFile(staged, op)
}

// isStaged says whether something is what was staged.
func isStaged(p slotfs.Place, op *Op) bool {
	st, err := p.Dir.Stat(p.Name)
	return err == nil && st.Ino == op.StageIno && st.Mtime == op.StageMod
}

// moveBack does the same where there is nothing now.
func (s *Switcher) moveBack(from, at slotfs.Place, _ *Op) error { return slotfs.Move(from, at) }

// isEdited says whether what was taken out is not what the plan expected there.
func isEdited(out slotfs.Place, op *Op) bool {
	st, err := out.Dir.Stat(out.Name)
	return err == nil && op.Was != nil && !st.Unchanged(*op.Was)
}

// twoSteps is exchangeEntries where the file system knows none: there is nothing at the path for a moment.
func (s *Switcher) twoSteps(staged, at slotfs.Place, op *Op) error {
	old := s.former(op)
	if err := slotfs.Move(at, old); err != nil {
		return err
	}
	if isEdited(old, op) {
		return s.giveBack(old, at, op, s.moveBack)
	}
	if err := s.runHook(); err != nil {
		return err
	}
	if err := slotfs.Move(staged, at); err != nil {
		return errors.Join(err, slotfs.Move(old, at))
	}
	return s.displaceFile(old, op)
}

// staged is where what is to be placed waits, and where exchange has what it replaces.
func (s *Switcher) staged(op *Op) slotfs.Place {
	if op.Verb == Restore {
		return slotfs.Place{Dir: s.Area.Aside, Name: op.Stage}
	}
	return slotfs.Place{Dir: s.Area.Stage, Name: op.Stage}
}

// Untouched says whether what an operation would place is where it was before any run of it.
func Untouched(area *Area, op *Op) bool {
	s := Switcher{Area: area}
	return isStaged(s.staged(op), op) && !isThere(s.former(op))
}

// former is where twoSteps has what it replaces.
func (s *Switcher) former(op *Op) slotfs.Place {
	return slotfs.Place{Dir: s.Area.Stage, Name: op.Stage + ".old"}
}

// resumePlace completes what an earlier run has begun at a path, and says whether there was something.
func (s *Switcher) resumePlace(i int, at slotfs.Place, op *Op, now slotfs.Stat, found bool) (bool, error) {
	staged, old := s.staged(op), s.former(op)
	half := op.Was != nil && isThere(old) // twoSteps has been at it, and what was there is out
	switch done := found && now.Ino == op.StageIno && now.Mtime == op.StageMod; {
	case done && half:
		return true, s.notePlaced(op, s.displaceFile(old, op))
	case done && isEdited(staged, op):
		return true, s.notePlaced(op, s.giveBack(staged, at, op, s.exchangeBack))
	case done:
		return true, s.notePlaced(op, s.displaceFile(staged, op))
	case !found && half && isEdited(old, op):
		return true, s.notePlaced(op, s.giveBack(old, at, op, s.moveBack))
	case !found && half:
		if err := slotfs.Move(staged, at); err != nil {
			return true, err
		}
		return true, s.notePlaced(op, s.displaceFile(old, op))
	}
	st, err := staged.Dir.Stat(staged.Name)
	if err != nil && !slotfs.Gone(err) {
		return false, err
	}
	// it was placed, and an operator has changed it since
	if err != nil || half || op.Was != nil && st.Ino != op.StageIno {
		return true, s.noteLeft(i, op)
	}
	return false, nil
}
