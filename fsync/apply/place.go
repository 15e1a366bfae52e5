package apply

import (
	"errors"
	"io/fs"

	"saltclusterd/fsync/slotfs"
)

// place makes staged content live.
func (s *Switcher) place(i int, at slotfs.Place, op *Op) error {
	staged := s.staged(op)
	if op.Known && op.Was == nil { // most of a new tree: where there is nothing in the way, nothing need be looked at
		if err := s.step(); err != nil {
			return err
		}
		if slotfs.Move(staged, at) == nil {
			return s.placed(op, nil)
		}
	}
	now, err := at.Dir.Stat(at.Name)
	if err != nil && !slotfs.Gone(err) {
		return err
	}
	if done, rerr := s.resume(i, at, op, now, err == nil); done {
		return rerr
	}
	switch {
	case !op.Known, op.Was == nil && err == nil, op.Was != nil && (err != nil || !now.Unchanged(*op.Was)):
		s.kept(op)
		return s.recoverFar(at, op)
	}
	if err := s.step(); err != nil {
		return err
	}
	if op.Was == nil {
		err = slotfs.Move(staged, at)
		if errors.Is(err, fs.ErrExist) {
			s.kept(op)
			return nil
		}
	} else {
		err = s.exchange(staged, at, op)
	}
	if far(err) {
		err = s.placeFar(staged, at, op)
	}
	return s.placed(op, err)
}

// placed notes how placing something has ended.
func (s *Switcher) placed(op *Op, err error) error {
	switch {
	case err == nil:
		s.out.Installed++
	case errors.Is(err, errEdited):
		s.kept(op)
		return nil
	}
	return err
}

// errEdited says that something was edited between the last look and the exchange.
var errEdited = errors.New("edited meanwhile")

func (s *Switcher) exchange(staged, at slotfs.Place, op *Op) error {
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
	if edited(staged, op) {
		return s.giveBack(staged, at, op, s.exchangeBack)
	}
	return s.displace(staged, op)
}

// giveBack returns an edit that was taken out to where it was. Where that cannot be done any more, it is put aside.
func (s *Switcher) giveBack(from, at slotfs.Place, op *Op, by func(from, at slotfs.Place, op *Op) error) error {
	if err := s.step(); err != nil {
		return err
	}
	if err := by(from, at, op); slotfs.Gone(err) || errors.Is(err, fs.ErrExist) {
		if err := s.displace(from, op); err != nil {
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
	if ours(staged, op) {
		return nil
	}
	if err := slotfs.Exchange(staged, at); err != nil {
		return err
	}
	return s.displace(staged, op)
}

// ours says whether something is what was staged.
func ours(p slotfs.Place, op *Op) bool {
	st, err := p.Dir.Stat(p.Name)
	return err == nil && st.Ino == op.StageIno && st.Mtime == op.StageMod
}

// moveBack does the same where there is nothing now.
func (s *Switcher) moveBack(from, at slotfs.Place, _ *Op) error { return slotfs.Move(from, at) }

// edited says whether what was taken out is not what the plan expected there.
func edited(out slotfs.Place, op *Op) bool {
	st, err := out.Dir.Stat(out.Name)
	return err == nil && op.Was != nil && !st.Unchanged(*op.Was)
}

// twoSteps is exchange where the file system knows none: there is nothing at the path for a moment.
func (s *Switcher) twoSteps(staged, at slotfs.Place, op *Op) error {
	old := s.former(op)
	if err := slotfs.Move(at, old); err != nil {
		return err
	}
	if edited(old, op) {
		return s.giveBack(old, at, op, s.moveBack)
	}
	if err := s.step(); err != nil {
		return err
	}
	if err := slotfs.Move(staged, at); err != nil {
		return errors.Join(err, slotfs.Move(old, at))
	}
	return s.displace(old, op)
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
	return ours(s.staged(op), op) && !there(s.former(op))
}

// former is where twoSteps has what it replaces.
func (s *Switcher) former(op *Op) slotfs.Place {
	return slotfs.Place{Dir: s.Area.Stage, Name: op.Stage + ".old"}
}

// resume completes what an earlier run has begun at a path, and says whether there was something.
func (s *Switcher) resume(i int, at slotfs.Place, op *Op, now slotfs.Stat, found bool) (bool, error) {
	staged, old := s.staged(op), s.former(op)
	half := op.Was != nil && there(old) // twoSteps has been at it, and what was there is out
	switch done := found && now.Ino == op.StageIno && now.Mtime == op.StageMod; {
	case done && half:
		return true, s.placed(op, s.displace(old, op))
	case done && edited(staged, op):
		return true, s.placed(op, s.giveBack(staged, at, op, s.exchangeBack))
	case done:
		return true, s.placed(op, s.displace(staged, op))
	case !found && half && edited(old, op):
		return true, s.placed(op, s.giveBack(old, at, op, s.moveBack))
	case !found && half:
		if err := slotfs.Move(staged, at); err != nil {
			return true, err
		}
		return true, s.placed(op, s.displace(old, op))
	}
	st, err := staged.Dir.Stat(staged.Name)
	if err != nil && !slotfs.Gone(err) {
		return false, err
	}
	// it was placed, and an operator has changed it since
	if err != nil || half || op.Was != nil && st.Ino != op.StageIno {
		return true, s.left(i, op)
	}
	return false, nil
}
