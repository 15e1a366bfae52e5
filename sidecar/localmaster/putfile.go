package localmaster

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// tempPrefix marks files being written: hidden from Salt, and recognised as ours by whoever watches the directory.
const tempPrefix = ".saltcluster-"

// newFile describes a file that appears whole or not at all.
type newFile struct {
	name  string // within the root
	data  []byte
	mode  fs.FileMode
	owner Owner
	mtime time.Time // zero: now
	sync  bool      // survive a power cut
	fresh bool      // fail with fs.ErrExist when the name is taken
}

// writeIn writes the file beside its place and renames it there. Whatever stood there, a symlink too, is replaced.
func (f newFile) writeIn(root *os.Root) (err error) {
	temp, err := tempName()
	if err != nil {
		return err
	}
	w, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(temp)
		}
	}()
	if err := errors.Join(f.fillTemp(w), w.Close()); err != nil {
		return err
	}
	if !f.mtime.IsZero() {
		if err := root.Chtimes(temp, f.mtime, f.mtime); err != nil {
			return err
		}
	}
	if err := f.renameIn(root, temp); err != nil {
		return err
	}
	if f.sync {
		return syncDir(root)
	}
	return nil
}

func (f newFile) renameIn(root *os.Root, temp string) error {
	if !f.fresh {
		return root.Rename(temp, f.name)
	}
	if err := root.Link(temp, f.name); err != nil {
		return err
	}
	return root.Remove(temp)
}

func (f newFile) fillTemp(w *os.File) error {
	if _, err := w.Write(f.data); err != nil {
		return err
	}
	if err := w.Chmod(f.mode); err != nil {
		return err
	}
	if f.owner != Unowned {
		if err := w.Chown(f.owner.UID, f.owner.GID); err != nil {
			return err
		}
	}
	if f.sync {
		return w.Sync()
	}
	return nil
}

// putSymlink makes name a symlink to target, atomically.
func putSymlink(root *os.Root, name, target string) error {
	temp, err := tempName()
	if err != nil {
		return err
	}
	if err := root.Symlink(target, temp); err != nil {
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		_ = root.Remove(temp)
		return err
	}
	return nil
}

func syncDir(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func tempName() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("temporary name: %w", err)
	}
	return tempPrefix + hex.EncodeToString(b[:]), nil
}
