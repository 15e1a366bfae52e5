package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Prefix begins the name that a file has until it is whole, followed by digits. It is hidden from globs of
// configuration files.
const Prefix = ".saltcluster-"

// Options are what a file is besides its content.
type Options struct {
	Mode   fs.FileMode // its permission bits whatever the umask says
	Prefix string      // of its name until it is whole, in the same directory; empty: Prefix
	Owner  *Owner      // nil: whoever we are
}

// Owner is whom a file belongs to; -1 leaves the user, or the group, as it is.
type Owner struct{ UID, GID int }

// WriteFile is Write of content.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	return Write(path, Options{Mode: mode}, Content(content))
}

// Content is what Write asks for when the content is at hand.
func Content(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

// Write makes path hold what fill writes, whole and on the disk when Write returns nil. After an error path is what it
// was before, or, when only the last step failed, whole but perhaps gone after a power loss. Its errors begin with what
// was written.
func Write(path string, o Options, fill func(io.Writer) error) error {
	if err := write(path, o, fill); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func write(path string, o Options, fill func(io.Writer) error) error {
	prefix := o.Prefix
	if prefix == "" {
		prefix = Prefix
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, prefix+"*") // 0600
	if err != nil {
		return err
	}
	if err := errors.Join(prepare(f, o, fill), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(dir)
}

func prepare(f *os.File, o Options, fill func(io.Writer) error) error {
	if err := fill(f); err != nil {
		return err
	}
	if err := f.Chmod(o.Mode.Perm()); err != nil {
		return err
	}
	if o.Owner != nil {
		if err := f.Chown(o.Owner.UID, o.Owner.GID); err != nil {
			return err
		}
	}
	return f.Sync()
}

// SyncDir makes what was created, renamed and removed in a directory last.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// SyncFS makes all that was written on the file system of dir last, at once for many files.
func SyncFS(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: dir, Err: err}
	}
	return nil
}
