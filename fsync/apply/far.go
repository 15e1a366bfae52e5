package apply

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// far says that the area is on another file system than a path: something is mounted inside of the slot. There content
// is copied, and renamed in its own directory. When that is cut off, the next run finds a path that is not as the plan
// says, and leaves it to the next scan, which sees what was done.
func far(err error) bool { return errors.Is(err, unix.EXDEV) }

// busy says that something is mounted at the very path. It stays.
func busy(err error) bool { return errors.Is(err, unix.EBUSY) }

// placeFar is place where nothing can be renamed.
func (s *Switcher) placeFar(staged, at slotfs.Place, op *Op) error {
	if t := op.Entry.Type; t != tree.File && t != tree.Symlink {
		return errEdited // only a directory that was put aside, or a device, which nothing copies
	}
	if err := s.step(); err != nil {
		return err
	}
	temp := slotfs.Place{Dir: at.Dir, Name: tree.OwnPrefix + op.Stage}
	err := s.copy(staged, temp, &op.Entry)
	if err == nil {
		err = s.saveFar(at, op)
	}
	if err == nil {
		err = s.putFar(temp, at, op)
	}
	if rerr := temp.Dir.Remove(temp.Name); rerr != nil && !slotfs.Gone(rerr) {
		err = errors.Join(err, rerr)
	}
	if err != nil {
		return err
	}
	return staged.Dir.Remove(staged.Name)
}

// putFar makes the copy beside a path live. The file that it replaces was saved before, unless it was edited since.
func (s *Switcher) putFar(temp, at slotfs.Place, op *Op) error {
	if op.Was == nil {
		err := slotfs.Move(temp, at)
		if errors.Is(err, fs.ErrExist) {
			return errEdited
		}
		return err
	}
	err := slotfs.Exchange(temp, at)
	if errors.Is(err, slotfs.ErrNoExchange) {
		return slotfs.Replace(temp, at)
	}
	if err == nil && edited(temp, op) {
		err = errors.Join(errEdited, slotfs.Exchange(temp, at))
	}
	return err
}

// removeFar is remove where nothing can be renamed.
func (s *Switcher) removeFar(at slotfs.Place, op *Op) error {
	err := s.saveFar(at, op)
	if err == nil {
		err = at.Dir.Remove(at.Name)
	}
	switch {
	case errors.Is(err, errEdited):
		s.kept(op)
		return nil
	case err == nil || slotfs.Gone(err):
		s.out.Removed++
		return nil
	}
	return err
}

// saveFar copies what is at a path to where it is kept, and makes sure that it is still what the plan expected.
func (s *Switcher) saveFar(at slotfs.Place, op *Op) error {
	if op.Was == nil {
		return nil
	}
	to := slotfs.Place{Dir: s.Area.Keep, Name: op.Old.Content().String()}
	if op.Aside != "" {
		to = slotfs.Place{Dir: s.Area.Aside, Name: op.AsideID}
	}
	save := op.Aside != "" || op.Old.Type == tree.File
	if save {
		if err := s.copy(at, to, &op.Old); err != nil {
			return err
		}
	}
	now, err := at.Dir.Stat(at.Name)
	if slotfs.Gone(err) || err == nil && !now.Unchanged(*op.Was) {
		err = errEdited
		if save {
			err = errors.Join(err, to.Dir.Remove(to.Name))
		}
	}
	switch {
	case err != nil:
		return err
	case op.Aside != "":
		return s.noteAside(to, op, op.Aside)
	case save:
		s.out.Displaced = append(s.out.Displaced, op.Old)
	}
	return nil
}

// copy copies a file or a symlink, in place of what an earlier run has left there.
func (s *Switcher) copy(from, to slotfs.Place, e *tree.Entry) error {
	if err := to.Dir.Remove(to.Name); err != nil && !slotfs.Gone(err) {
		return err
	}
	if e.Type == tree.Symlink {
		target, err := from.Dir.Readlink(from.Name)
		if err == nil {
			err = to.Dir.Symlink(target, to.Name)
		}
		if err == nil && s.UID >= 0 {
			err = to.Dir.Chown(to.Name, s.UID, s.GID)
		}
		return err
	}
	in, _, err := from.Dir.File(from.Name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.Dir.Create(to.Name, true)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil && s.UID >= 0 {
		err = out.Chown(s.UID, s.GID)
	}
	if err == nil {
		err = out.Chmod(fs.FileMode(e.Mode))
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
