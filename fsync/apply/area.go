package apply

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// Area is a slot's directory together with where its staged, displaced and put aside content is.
type Area struct {
	Live, Stage, Keep, Aside *slotfs.Dir
	Path                     string // of the area
}

// InSlot is the name that the area of a slot has in that, where it is on another file system than the state directory.
const InSlot = tree.OwnPrefix + "area"

// OpenArea opens, and makes, the area of a slot.
func OpenArea(stateDir string, slot tree.Slot, dir string) (*Area, error) {
	live, err := slotfs.Open(dir)
	if err != nil {
		return nil, err
	}
	a := &Area{Live: live}
	inside := filepath.Join(dir, InSlot)
	if err := a.openPath(outsidePath(stateDir, slot)); err == nil && canRename(a.Stage, live) {
		return a, nil
	}
	a.closeArea()
	if err := a.openPath(inside); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// OpenFormer opens the area that a slot had while its directory was on the file system of the state directory; nil: it
// still has it, or never had one. Nothing can be renamed from there to the slot.
func (a *Area) OpenFormer(stateDir string, slot tree.Slot, dir string) (*Area, error) {
	path := outsidePath(stateDir, slot)
	if _, err := os.Stat(path); a.Path == path || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	live, err := slotfs.Open(dir)
	if err != nil {
		return nil, err
	}
	former := &Area{Live: live}
	if err := former.openPath(path); err != nil {
		former.Close()
		return nil, err
	}
	return former, nil
}

func outsidePath(stateDir string, slot tree.Slot) string {
	return filepath.Join(stateDir, "slots", url.PathEscape(slot.String()))
}

// AsidePaths lists where something of a slot that was put aside may be, by its name: the area of a slot is below the
// state directory or in the slot's directory, as file systems are mounted. dir is empty for a slot without a directory.
func AsidePaths(stateDir string, slot tree.Slot, dir, name string) []string {
	paths := []string{filepath.Join(outsidePath(stateDir, slot), "aside", name)}
	if dir != "" {
		paths = append(paths, filepath.Join(dir, InSlot, "aside", name))
	}
	return paths
}

// TakeAside brings something that was put aside in a former area, at a path, to this one, under the same name. Nothing
// can be renamed from there to the slot. It may be repeated.
func (a *Area) TakeAside(path string, uid, gid int) error {
	dir, err := slotfs.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	from := slotfs.Place{Dir: dir, Name: filepath.Base(path)}
	to := slotfs.Place{Dir: a.Aside, Name: from.Name}
	if err := slotfs.Move(from, to); !isFar(err) {
		return err
	}
	was, err := dir.Stat(from.Name)
	if err != nil {
		return err
	}
	s := Switcher{Area: a, UID: uid, GID: gid}
	saved, err := s.copyUnchanged(from, was)
	if err == nil {
		err = slotfs.Replace(saved, to)
	}
	if err == nil {
		err = ignoreUnable(a.Aside.FlushNames())
	}
	if err != nil {
		return err
	}
	return dir.Remove(from.Name)
}

func (a *Area) openPath(path string) (err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make area: %w", err)
	}
	top, err := slotfs.Open(path)
	if err != nil {
		return err
	}
	defer top.Close()
	a.Path = path
	for name, dir := range map[string]**slotfs.Dir{"stage": &a.Stage, "keep": &a.Keep, "aside": &a.Aside} {
		if err := top.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if *dir, err = top.Sub(name); err != nil {
			return err
		}
	}
	return nil
}

// canRename says whether a file can be renamed from one directory to the other: the device alone does not tell, because
// of bind mounts.
func canRename(from, to *slotfs.Dir) bool {
	name := tree.OwnPrefix + rand.Text()
	f, err := from.Create(name, true)
	if err != nil {
		return false
	}
	_ = f.Close()
	if err := slotfs.Move(slotfs.Place{Dir: from, Name: name}, slotfs.Place{Dir: to, Name: name}); err != nil {
		_ = from.Remove(name)
		return false
	}
	return to.Remove(name) == nil
}

func (a *Area) closeArea() {
	for _, d := range []**slotfs.Dir{&a.Stage, &a.Keep, &a.Aside} {
		if *d != nil {
			_ = (*d).Close()
			*d = nil
		}
	}
}

// Close closes the directories.
func (a *Area) Close() {
	a.closeArea()
	_ = a.Live.Close()
}
