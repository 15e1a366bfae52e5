package adopt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/localmaster"
)

// Write writes the files of a plan. saltclusterd's own come first, and have to be without a mistake before the salt-master's
// are touched. own is saltclusterd's main configuration file.
func Write(own string, files []File) error {
	for _, f := range files {
		if f.master {
			if _, err := config.Load(own); err != nil {
				return fmt.Errorf("saltclusterd's configuration is not complete, so the salt-master's was left alone: %w", err)
			}
		}
		if err := f.put(); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	return nil
}

// put makes the file appear whole or not at all.
func (f File) put() error {
	dir := filepath.Dir(f.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".saltcluster-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // no-op after the rename
	_, err = tmp.Write(f.text)
	err = errors.Join(err, tmp.Chmod(f.mode))
	if f.owner != localmaster.Unowned {
		err = errors.Join(err, tmp.Chown(f.owner.UID, f.owner.GID))
	}
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.Path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
