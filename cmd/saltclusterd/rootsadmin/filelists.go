package rootsadmin

import (
	"errors"
	"os"
	"path/filepath"
)

// forgetFileLists makes the master list its files anew. It keeps lists of each environment for 20 seconds and longer
// (salt/fileserver/__init__.py check_file_list_cache); its hashes are kept with the time of the file, which changes.
func (r *Roots) forgetFileLists() {
	r.cfg.ForgetFiles() // first, so that a list that is being made is not written
	dir := filepath.Join(r.cfg.Master.CacheDir, "file_lists", "roots")
	lists, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.cfg.Logger.Warn("the master's file lists were not updated", "path", dir, "err", err)
	}
	for _, l := range lists {
		if filepath.Ext(l.Name()) != ".p" {
			continue
		}
		if err := os.Remove(filepath.Join(dir, l.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.cfg.Logger.Warn("the master's file list was not updated", "path", filepath.Join(dir, l.Name()), "err", err)
		}
	}
}
