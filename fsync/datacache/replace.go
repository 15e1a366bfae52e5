package datacache

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
)

// errChanged says that the master wrote a file while we were about to replace it. Nothing of what it wrote is lost.
var errChanged = errors.New("the master has just written it")

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
