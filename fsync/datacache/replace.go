package datacache

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// errChanged says that the master wrote a file while we were about to replace it. Nothing of what it wrote is lost.
var errChanged = errors.New("the master has just written it")

// replace gives the file temp the name of a file beside it whose content is still old; nil: there is none. A stock
// master locks nothing, so the two are exchanged first, and back again if what came out is not what was expected.
func replace(root *os.Root, temp, name string, old []byte) error {
	dir, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	rename := func(flags uint) error {
		fd := int(dir.Fd())
		return unix.Renameat2(fd, path.Base(temp), fd, path.Base(name), flags)
	}
	if old == nil {
		err := rename(unix.RENAME_NOREPLACE)
		switch {
		case unsupported(err):
			return root.Rename(temp, name)
		case errors.Is(err, unix.EEXIST):
			return errors.Join(errChanged, root.Remove(temp))
		}
		return err
	}
	switch err := rename(unix.RENAME_EXCHANGE); {
	case unsupported(err):
		return replaceChecked(root, temp, name, old)
	case errors.Is(err, unix.ENOENT): // the master has removed it
		return errors.Join(errChanged, root.Remove(temp))
	case err != nil:
		return err
	}
	if is, err := readFile(root, temp); err == nil && !bytes.Equal(is, old) {
		return errors.Join(errChanged, rename(unix.RENAME_EXCHANGE), root.Remove(temp))
	}
	return root.Remove(temp)
}

// removeOld removes a file whose content is still old.
func removeOld(root *os.Root, name string, old []byte) error {
	temp := path.Join(path.Dir(name), tempPrefix+rand.Text())
	if err := root.Rename(name, temp); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if is, err := readFile(root, temp); err == nil && !bytes.Equal(is, old) {
		err := root.Link(temp, name) // fails when the master has written yet another one, which counts
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return errors.Join(errChanged, err, root.Remove(temp))
	}
	return root.Remove(temp)
}

// unsupported says whether a file system cannot do what renameat2 adds to rename.
func unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}

// replaceChecked is replace with a gap of microseconds, for file systems that cannot exchange.
func replaceChecked(root *os.Root, temp, name string, old []byte) error {
	if is, err := readFile(root, name); err != nil || !bytes.Equal(is, old) {
		return errors.Join(errChanged, root.Remove(temp))
	}
	return root.Rename(temp, name)
}
