package datacache

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// errChanged says that the master wrote a file while we were about to replace it. Nothing of what it wrote is lost.
var errChanged = errors.New("the master has just written it")

// tempPrefix hides a file from Salt, which takes what ends in .p for data, and marks it as ours.
const tempPrefix = ".saltcluster-"

// ourTemp begins the names of this process's own.
var ourTemp = tempPrefix + rand.Text()[:8] + "-"

func tempName() string { return ourTemp + rand.Text() }

// sweep removes what processes left that were killed between two steps. It does not need a turn: the files that this
// process works with have other names.
func sweep(root *os.Root, dirs []string) error {
	var errs []error
	for _, dir := range dirs {
		names, err := listDir(root, dir)
		errs = append(errs, err)
		for _, name := range names {
			if strings.HasPrefix(name, tempPrefix) && !strings.HasPrefix(name, ourTemp) {
				errs = append(errs, remove(root, path.Join(dir, name)))
			}
		}
	}
	return errors.Join(errs...)
}

// removeOld removes a file whose content is still old.
func removeOld(root *os.Root, name string, old []byte) error {
	temp := path.Join(path.Dir(name), tempName())
	if err := root.Rename(name, temp); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if is, err := readFile(root, temp, int64(len(old))); err == nil && bytes.Equal(is, old) {
		_ = root.Remove(temp) // it is gone; if this fails it is left for the next start
		return nil
	}
	return putBack(root, temp, name)
}

// putBack gives a file that the master wrote its name again, unless the master has written yet another one, which
// counts.
func putBack(root *os.Root, temp, name string) error {
	if err := root.Link(temp, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err // and temp stays: nothing else holds it
	}
	_ = root.Remove(temp)
	return errChanged
}
