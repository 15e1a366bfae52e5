package apply

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// isFar says that the area is on another file system than a path: something is mounted inside of the slot. There
// content is copied, and renamed in its own directory. When that is cut off, the next run finds a path that is not as
// the plan says, and leaves it to the next scan, which sees what was done; an edit that was taken out there is put
// aside.
func isFar(err error) bool { return errors.Is(err, unix.EXDEV) }

// isBusy says that something is mounted at the very path. It stays.
func isBusy(err error) bool { return errors.Is(err, unix.EBUSY) }

// placeBeside is the name next to a path by which what goes there, or was there, is known in between.
func placeBeside(at slotfs.Place, op *Op) slotfs.Place {
	return slotfs.Place{Dir: at.Dir, Name: tree.OwnPrefix + tree.Sum([]byte(op.Path)).String()[:32]}
}

// placeFar is placeEntry where nothing can be renamed.
func (s *Switcher) placeFar(staged, at slotfs.Place, op *Op) error {
	if t := op.Entry.Type; t != tree.File && t != tree.Symlink {
		return errEdited // only a directory that was put aside, or a device, which nothing copies
	}
	out := placeBeside(at, op)
	if err := s.tidyOut(out, op, nil); err != nil {
		return err
	}
	if err := s.runHook(); err != nil {
		return err
	}
	if err := s.copyEntry(staged, out, op.Entry.Type, op.Entry.Mode); err != nil {
		_ = out.Dir.Remove(out.Name) // a part of the copy
		return err
	}
	ours, err := out.Dir.Stat(out.Name)
	if err != nil {
		return err
	}
	if err = s.saveFar(at, op); err == nil {
		err = s.putFar(out, at, op)
	}
	if lost := s.tidyOut(out, op, &ours); lost != nil {
		return lost
	}
	if err == nil && op.Verb == Restore { // nothing else has it, and the two file systems go to the disk by themselves
		err = ignoreUnable(at.Dir.FlushNames())
	}
	if err != nil {
		return err
	}
	return staged.Dir.Remove(staged.Name)
}

// putFar makes the copy beside a path live. The file that it replaces was saved before, unless it was edited since.
// What it leaves beside the path is for tidyOut.
func (s *Switcher) putFar(out, at slotfs.Place, op *Op) error {
	if err := s.runHook(); err != nil {
		return err
	}
	if op.Was == nil {
		err := slotfs.Move(out, at)
		if errors.Is(err, fs.ErrExist) {
			return errEdited
		}
		return err
	}
	err := slotfs.Exchange(out, at)
	switch {
	case errors.Is(err, slotfs.ErrNoExchange):
		return slotfs.Replace(out, at)
	case slotfs.Gone(err):
		return errEdited
	case err != nil || !isEdited(out, op):
		return err
	}
	if err := s.runHook(); err != nil {
		return err
	}
	_ = slotfs.Exchange(out, at)
	return errEdited
}

// removeFar is removeEntry where nothing can be renamed.
func (s *Switcher) removeFar(at slotfs.Place, op *Op) error {
	out := placeBeside(at, op)
	err := s.tidyOut(out, op, nil)
	if err == nil {
		err = s.saveFar(at, op)
	}
	if err == nil {
		err = s.runHook()
	}
	if err == nil {
		err = slotfs.Move(at, out)
	}
	if err == nil && isEdited(out, op) {
		if err = s.runHook(); err == nil {
			_ = slotfs.Move(out, at)
			err = errEdited
		}
	}
	if lost := s.tidyOut(out, op, nil); lost != nil {
		return lost
	}
	switch {
	case errors.Is(err, errEdited):
		s.noteKept(op)
		return nil
	case err == nil || slotfs.Gone(err):
		s.out.Removed++
		return nil
	}
	return err
}

// recoverFar takes care of what a run that was killed has left beside a path.
func (s *Switcher) recoverFar(at slotfs.Place, op *Op) error {
	out := placeBeside(at, op)
	if now, err := out.Dir.Stat(out.Name); err == nil && op.Was != nil && now.Unchanged(*op.Was) {
		if err := s.noteSaved(op); err != nil {
			return err
		}
	}
	return s.tidyOut(out, op, nil)
}

// tidyOut removes what is left beside a path: a copy of what is staged, or what that has replaced, which was saved.
// Anything else is an edit that nothing else holds: it is put aside, and where that fails it stays, with an error.
func (s *Switcher) tidyOut(out slotfs.Place, op *Op, ours *slotfs.Stat) error {
	if s.ended {
		return nil
	}
	now, err := out.Dir.Stat(out.Name)
	if slotfs.Gone(err) {
		return nil
	}
	copied := err == nil && (ours != nil && now.Unchanged(*ours) || op.Was != nil && now.Unchanged(*op.Was))
	if err == nil && !copied && ours == nil {
		copied, err = s.copiedBefore(out, op)
	}
	if err == nil && !copied {
		err = s.copyOverruledEdit(out, now, op)
	}
	if err == nil {
		err = out.Dir.Remove(out.Name)
	}
	if err != nil && !slotfs.Gone(err) {
		return fmt.Errorf("the former content is beside it as %s: %w", out.Name, err)
	}
	return nil
}

// copiedBefore says whether something is what an earlier run has copied of what is staged, or the beginning of that.
func (s *Switcher) copiedBefore(out slotfs.Place, op *Op) (bool, error) {
	if op.Verb == Remove {
		return false, nil
	}
	staged := s.staged(op)
	if op.Entry.Type == tree.Symlink {
		a, aerr := staged.Dir.Readlink(staged.Name)
		b, berr := out.Dir.Readlink(out.Name)
		return aerr == nil && berr == nil && a == b, nil
	}
	whole, _, err := staged.Dir.File(staged.Name)
	if slotfs.Gone(err) || errors.Is(err, slotfs.ErrNotFile) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer whole.Close()
	part, st, err := out.Dir.File(out.Name)
	if slotfs.Gone(err) || errors.Is(err, slotfs.ErrNotFile) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer part.Close()
	return isBeginning(part, whole, st.Size)
}

// isBeginning says whether a file of a size is the beginning of another one.
func isBeginning(part, whole io.Reader, size int64) (bool, error) {
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for size > 0 {
		n := min(size, int64(len(a)))
		if _, err := io.ReadFull(part, a[:n]); err != nil {
			return false, err
		}
		_, err := io.ReadFull(whole, b[:n])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		if err != nil || !bytes.Equal(a[:n], b[:n]) {
			return false, err
		}
		size -= n
	}
	return true, nil
}

// copyUnchanged copies a file or a symlink to saving, and makes sure that it has not changed meanwhile.
func (s *Switcher) copyUnchanged(from slotfs.Place, was slotfs.Stat) (slotfs.Place, error) {
	saved := s.saving()
	if was.Type != tree.File && was.Type != tree.Symlink {
		return saved, fmt.Errorf("neither a file nor a symlink: %w", fs.ErrInvalid)
	}
	err := s.copyEntry(from, saved, was.Type, was.Mode)
	if now, serr := from.Dir.Stat(from.Name); err == nil {
		if err = serr; err == nil && !now.Unchanged(was) {
			err = errors.New("it changed while it was copied")
		}
	}
	if err != nil {
		_ = saved.Dir.Remove(saved.Name)
	}
	return saved, err
}

// copyOverruledEdit copies an edit that was taken out to what is put aside.
func (s *Switcher) copyOverruledEdit(out slotfs.Place, was slotfs.Stat, op *Op) error {
	saved, err := s.copyUnchanged(out, was)
	if err != nil {
		return err
	}
	h := tree.Sum(fmt.Appendf(nil, "%s\x00%d\x00%d", op.Path, was.Ino, was.Mtime))
	to := slotfs.Place{Dir: s.Area.Aside, Name: "E" + h.String()[:25]}
	if err := slotfs.Replace(saved, to); err != nil { // what an earlier run has copied is the same
		return err
	}
	return s.noteAside(to, op, editedInstant)
}

// saving is where the area has a copy that is not complete.
func (s *Switcher) saving() slotfs.Place { return slotfs.Place{Dir: s.Area.Stage, Name: "saving"} }

// saveFar copies what is at a path to where it is kept, and makes sure that it is still what the plan expected.
func (s *Switcher) saveFar(at slotfs.Place, op *Op) error {
	if op.Was == nil {
		return nil
	}
	saved, save := s.saving(), op.Aside != "" || op.Old.Type == tree.File
	if save {
		if err := s.copyEntry(at, saved, op.Old.Type, op.Old.Mode); err != nil {
			_ = saved.Dir.Remove(saved.Name)
			return err
		}
	}
	now, err := at.Dir.Stat(at.Name)
	switch {
	case slotfs.Gone(err), err == nil && !now.Unchanged(*op.Was):
		err = errEdited
	case err == nil && save: // in place of the same content only, whoever has put it there
		err = slotfs.Replace(saved, s.savedAs(op))
	}
	if err != nil {
		if save {
			_ = saved.Dir.Remove(saved.Name)
		}
		return err
	}
	return s.noteSaved(op)
}

// savedAs is where saveFar keeps what was at a path.
func (s *Switcher) savedAs(op *Op) slotfs.Place {
	if op.Aside != "" {
		return slotfs.Place{Dir: s.Area.Aside, Name: op.AsideID}
	}
	return slotfs.Place{Dir: s.Area.Keep, Name: op.Old.Content().String()}
}

// noteSaved tells of what saveFar has kept.
func (s *Switcher) noteSaved(op *Op) error {
	switch {
	case op.Aside != "":
		return s.noteAside(s.savedAs(op), op, op.Aside)
	case op.Old.Type == tree.File:
		s.out.Displaced = append(s.out.Displaced, op.Old)
	}
	return nil
}

// copyEntry copies a file or a symlink, in place of an earlier copy.
func (s *Switcher) copyEntry(from, to slotfs.Place, is tree.Type, mode uint16) error {
	if err := to.Dir.Remove(to.Name); err != nil && !slotfs.Gone(err) {
		return err
	}
	if is == tree.Symlink {
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
		err = out.Chmod(fs.FileMode(mode))
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
