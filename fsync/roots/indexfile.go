package roots

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"saltclusterd/fsync/scan"
)

// An index is only a cache of what was read: when it is lost, files are read again. It is written from time to time and
// by Close.

// indexMagic begins the file of an index.
const indexMagic = "saltclusterd index 1\n"

func indexPath(dir string, slot SlotName) string {
	return filepath.Join(dir, "index-"+url.PathEscape(slot.String()))
}

func loadIndex(dir string, slot SlotName) (scan.Index, error) {
	f, err := os.Open(indexPath(dir, slot))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var magic string
	var ix scan.Index
	d := gob.NewDecoder(f)
	if err := d.Decode(&magic); err != nil || magic != indexMagic {
		return nil, fmt.Errorf("not an index of this version: %w", err)
	}
	if err := d.Decode(&ix); err != nil {
		return nil, err
	}
	return ix, nil
}

func saveIndex(dir string, slot SlotName, ix scan.Index) error {
	path := indexPath(dir, slot)
	f, err := os.CreateTemp(dir, "index-new-")
	if err != nil {
		return err
	}
	e := gob.NewEncoder(f)
	err = errors.Join(e.Encode(indexMagic), e.Encode(ix), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("save index of %s: %w", slot, err)
	}
	return nil
}
