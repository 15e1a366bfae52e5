package apply

import (
	"errors"
	"fmt"
	"io/fs"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// place makes staged content live.
func (s *Switcher) place(at slotfs.Place, op *Op) error {
	staged := slotfs.Place{Dir: s.Area.Stage, Name: op.Stage}
	now, err := at.Dir.Stat(at.Name)
	if err != nil && !slotfs.Gone(err) {
		return err
	}
	if done, rerr := s.resume(staged, at, op, now, err == nil); done {
		return rerr
	}
	switch {
	case !op.Known, op.Was == nil && err == nil, op.Was != nil && (err != nil || !now.Unchanged(*op.Was)):
		s.kept(op)
		return nil
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
	if errors.Is(err, errEdited) {
		s.kept(op)
		return nil
	}
	if err == nil {
		s.out.Installed++
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
	if out, err := staged.Dir.Stat(staged.Name); err != nil || !out.Unchanged(*op.Was) {
		if err := slotfs.Exchange(staged, at); err != nil {
			return err
		}
		return errEdited
	}
	return s.displace(staged, op)
}

// twoSteps is exchange where the file system knows none: there is nothing at the path for a moment.
func (s *Switcher) twoSteps(staged, at slotfs.Place, op *Op) error {
	old := s.former(op)
	if err := slotfs.Move(at, old); err != nil {
		return err
	}
	if err := s.step(); err != nil {
		return err
	}
	if err := slotfs.Move(staged, at); err != nil {
		return errors.Join(err, slotfs.Move(old, at))
	}
	return s.displace(old, op)
}

// former is where twoSteps has what it replaces.
func (s *Switcher) former(op *Op) slotfs.Place {
	return slotfs.Place{Dir: s.Area.Stage, Name: op.Stage + ".old"}
}

// resume completes what an earlier run has begun at a path, and says whether there was something.
func (s *Switcher) resume(staged, at slotfs.Place, op *Op, now slotfs.Stat, found bool) (bool, error) {
	old := s.former(op)
	_, oldErr := old.Dir.Stat(old.Name)
	switch {
	case found && now.Ino == op.StageIno && now.Mtime == op.StageMod:
		s.out.Installed++
		if oldErr == nil {
			staged = old
		}
		return true, s.displace(staged, op)
	case !found && oldErr == nil:
		if err := slotfs.Move(staged, at); err != nil {
			return true, err
		}
		s.out.Installed++
		return true, s.displace(old, op)
	}
	st, err := staged.Dir.Stat(staged.Name)
	switch {
	case slotfs.Gone(err): // it was placed, and an operator has changed it since
		s.kept(op)
		return true, nil
	case err == nil && op.Was != nil && st.Unchanged(*op.Was): // the same, but there was something
		s.kept(op)
		return true, s.displace(staged, op)
	}
	return false, err
}

// displace takes what a switch has taken out of the slot to where it is kept. There may be nothing.
func (s *Switcher) displace(from slotfs.Place, op *Op) error {
	st, err := from.Dir.Stat(from.Name)
	if op.Was == nil {
		return nil
	}
	gone := slotfs.Gone(err)
	if err != nil && !gone {
		return err
	}
	if !gone {
		if err := s.step(); err != nil {
			return err
		}
	}
	switch {
	case op.Aside != "":
		to := slotfs.Place{Dir: s.Area.Aside, Name: op.AsideID}
		if !gone {
			err = slotfs.Move(from, to)
		}
		if err == nil || gone && there(to) {
			s.out.Aside = append(s.out.Aside, Aside{op.AsideID, op.Path, op.Aside, op.Old})
		}
	case op.Old.Type == tree.File:
		to := slotfs.Place{Dir: s.Area.Keep, Name: op.Old.Content().String()}
		if !gone {
			err = slotfs.Replace(from, to)
		}
		if err == nil || gone && there(to) {
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

func there(p slotfs.Place) bool {
	_, err := p.Dir.Stat(p.Name)
	return err == nil
}

// remove takes a file or a symlink out of the slot.
func (s *Switcher) remove(i int, at slotfs.Place, op *Op) error {
	taken := s.taken(i)
	now, err := at.Dir.Stat(at.Name)
	switch {
	case slotfs.Gone(err), err == nil && op.Early && now.Type == tree.Dir: // an earlier run has done it
		return s.settle(i, op)
	case err != nil:
		return err
	case !op.Known || !now.Unchanged(*op.Was):
		s.kept(op)
		return nil
	}
	if err := s.step(); err != nil {
		return err
	}
	if err := slotfs.Move(at, taken); err != nil {
		if slotfs.Gone(err) {
			return nil
		}
		return err
	}
	if out, err := taken.Dir.Stat(taken.Name); err != nil || !out.Unchanged(*op.Was) {
		if err := slotfs.Move(taken, at); err == nil {
			s.kept(op)
			return nil
		}
		op.Aside, op.AsideID = "edited while it was removed", fmt.Sprintf("%s.%d", op.AsideID, i)
	}
	return s.settle(i, op)
}

func (s *Switcher) taken(i int) slotfs.Place {
	return slotfs.Place{Dir: s.Area.Stage, Name: fmt.Sprintf("removed.%d", i)}
}

// settle finishes a removal: what was taken out, now or by an earlier run, is displaced.
func (s *Switcher) settle(i int, op *Op) error {
	if op.Verb == Remove {
		s.out.Removed++
		return s.displace(s.taken(i), op)
	}
	return nil
}
