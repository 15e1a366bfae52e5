package apply

import (
	"errors"

	"golang.org/x/sys/unix"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// Flush brings to the disk what a switch has changed. It holds directories open until Close.
type Flush struct {
	dirs  []*slotfs.Dir          // in which something was changed, the first ones
	disks map[uint64]*slotfs.Dir // one of them on each file system
	many  bool                   // more directories than are listed
}

// noteDir adds a directory.
func (f *Flush) noteDir(d *slotfs.Dir) error {
	self, err := d.Self()
	if err != nil {
		return err
	}
	known := f.disks[self.Dev] != nil
	if known && f.many {
		return nil
	}
	own, err := d.Sub(".")
	if err != nil {
		return err
	}
	if f.many = len(f.dirs) >= flushFiles; f.many && known {
		return own.Close()
	}
	f.dirs = append(f.dirs, own)
	if !known {
		if f.disks == nil {
			f.disks = map[uint64]*slotfs.Dir{}
		}
		f.disks[self.Dev] = own
	}
	return nil
}

// Run waits for the disk. Only names were changed, unless all says that content was changed as well.
func (f *Flush) Run(all bool) error {
	var errs []error
	if all || f.many {
		for _, d := range f.disks {
			errs = append(errs, ignoreUnable(d.Flush()))
		}
		return errors.Join(errs...)
	}
	for _, d := range f.dirs {
		errs = append(errs, ignoreUnable(d.FlushNames()))
	}
	return errors.Join(errs...)
}

// Edits brings to the disk the files that others have written in a directory between two trees. A path that is gone by
// now, or has stopped being a file, is skipped.
func Edits(o tree.Objects, path string, from, to tree.Hash) error {
	top, err := slotfs.Open(path)
	if slotfs.Gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer top.Close()
	s := Switcher{Area: &Area{Live: top}, out: Outcome{Flush: &Flush{}}}
	defer s.out.Flush.Close()
	defer s.closeParent()
	files, blind := 0, false // where this program may not look, or a database from which something is missing
	err = tree.Diff(o, from, to, func(c tree.Change) error {
		dir, name, err := s.openParent(c.Path)
		if err != nil || c.To == nil || c.To.Type != tree.File {
			blind = blind || err != nil && !slotfs.Gone(err)
			return nil
		}
		if files++; files > flushFiles {
			return nil
		}
		f, _, err := dir.File(name)
		if err != nil {
			blind = blind || !slotfs.Gone(err) && !errors.Is(err, slotfs.ErrNotFile)
			return nil
		}
		defer f.Close()
		return ignoreUnable(f.Sync())
	})
	if blind = blind || errors.Is(err, tree.ErrNoObject); blind {
		err = ignoreUnable(top.Flush())
	}
	return errors.Join(err, s.out.Flush.Run(blind || files > flushFiles))
}

// ignoreUnable takes it for done where a file system cannot do such a thing.
func ignoreUnable(err error) error {
	for _, cannot := range []error{unix.EINVAL, unix.ENOTSUP, unix.ENOSYS} {
		if errors.Is(err, cannot) {
			return nil
		}
	}
	return err
}

// Close closes the directories.
func (f *Flush) Close() {
	if f == nil {
		return
	}
	for _, d := range f.dirs {
		_ = d.Close()
	}
}
