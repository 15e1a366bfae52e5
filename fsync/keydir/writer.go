package keydir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/fsync/mmapkeys"
)

const (
	// writeBatch bounds the temporary files at a time.
	writeBatch = 16384
	// syncEach is up to how many files are synced one by one; more are synced by the file system as a whole.
	syncEach = 32
)

// writer carries decisions out.
type writer struct {
	disk      *disk
	mode      fs.FileMode
	overruled *overruledFiles
	work      *work
}

// applyWritings carries writings out and returns what became of each. Before a file is replaced it is checked to be
// what the decision was about; if it is not, the decision is void (errChanged).
func (w *writer) applyWritings(ws []writing) []error {
	errs := make([]error, 0, len(ws))
	w.work.startWork(len(ws))
	for len(ws) > 0 {
		n := min(len(ws), writeBatch)
		errs = append(errs, w.writeFiles(ws[:n])...)
		ws = ws[n:]
	}
	return errs
}

func (w *writer) writeFiles(ws []writing) []error {
	errs := make([]error, len(ws))
	temps := make([]string, len(ws))
	for i, wr := range ws {
		if wr.want != (entry{}) {
			temps[i], errs[i] = w.prepareFile(wr, len(ws) <= syncEach)
		}
	}
	if len(ws) > syncEach {
		w.syncfs()
	}
	touched := map[place]bool{}
	for i, wr := range ws {
		if errs[i] == nil {
			errs[i] = w.commitFile(wr, temps[i], touched)
		}
		if temps[i] != "" && errs[i] != nil {
			_ = os.Remove(temps[i])
		}
		w.disk.refreshKeys([]string{wr.subject.id})
		w.work.addDone(1)
	}
	w.syncDirs(touched)
	return errs
}

func targetPlace(wr writing) place {
	if wr.subject.denied {
		return deniedDir
	}
	return placeOf(wr.want.State)
}

// prepareFile writes the new file under a temporary name beside its target.
func (w *writer) prepareFile(wr writing, sync bool) (name string, err error) {
	dir := w.disk.dirPath(targetPlace(wr))
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return "", fmt.Errorf("write key file: %w", err)
	}
	_, err = f.WriteString(wr.text)
	err = errors.Join(err, f.Chmod(w.mode), chownLike(f, dir))
	if sync && err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("write key file: %w", err)
	}
	return f.Name(), nil
}

// chownLike gives a file to the owner of dir, who is the user of the master, as far as we may.
func chownLike(f *os.File, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return f.Chown(int(st.Uid), int(st.Gid))
}

// commitFile puts the new file in place first and then removes those in other directories: a key is never in none.
func (w *writer) commitFile(wr writing, temp string, touched map[place]bool) error {
	if w.disk.hasChanged(wr.subject) {
		return errChanged
	}
	if wr.overruled {
		if err := w.keepOverruled(wr); err != nil {
			return err
		}
	}
	if temp != "" {
		p := targetPlace(wr)
		path := w.disk.filePath(p, wr.subject.id)
		if err := makeNewer(temp, path); err != nil {
			return err
		}
		if err := os.Rename(temp, path); err != nil {
			return fmt.Errorf("put key file in place: %w", err)
		}
		touched[p] = true
	}
	for _, p := range placesOf(wr.subject) {
		if temp != "" && p == targetPlace(wr) {
			continue
		}
		if _, there := w.disk.files[p][wr.subject.id]; !there {
			continue
		}
		if err := os.Remove(w.disk.filePath(p, wr.subject.id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove key file: %w", err)
		}
		touched[p] = true
	}
	return nil
}

// makeNewer gives temp a modification time after that of the file it replaces: masters cache keys by path and time
// (salt/crypt.py:_get_key_with_evict).
func makeNewer(temp, path string) error {
	old, err := os.Lstat(path)
	if err != nil {
		return nil // there is none
	}
	if now := time.Now(); !old.ModTime().Before(now.Add(-time.Second)) {
		at := old.ModTime().Add(time.Second)
		if err := os.Chtimes(temp, at, at); err != nil {
			return fmt.Errorf("stamp key file: %w", err)
		}
	}
	return nil
}

func (w *writer) keepOverruled(wr writing) error {
	for _, p := range placesOf(wr.subject) {
		if _, there := w.disk.files[p][wr.subject.id]; !there {
			continue
		}
		if err := w.overruled.keepFile(p, wr.subject.id, w.disk.filePath(p, wr.subject.id)); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) syncfs() {
	if d, err := os.Open(w.disk.root); err == nil {
		_ = unix.Syncfs(int(d.Fd())) // a lost file is healed from consensus
		_ = d.Close()
	}
}

// syncDirs makes the changes of directories durable and drops the master's cached list of minions, which would hide new
// ones for a minute; it reads the directory instead until it has written another.
func (w *writer) syncDirs(touched map[place]bool) {
	for p := range touched {
		if d, err := os.Open(w.disk.dirPath(p)); err == nil {
			_ = d.Sync()
			_ = d.Close()
		}
	}
	if touched[acceptedDir] {
		_ = os.Remove(w.disk.filePath(acceptedDir, keyCache))
	}
}

// removeTemps removes temporary files of a predecessor that died.
func (w *writer) removeTemps() {
	for p := range places {
		entries, err := os.ReadDir(w.disk.dirPath(p))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), tempPrefix) {
				_ = os.Remove(filepath.Join(w.disk.dirPath(p), e.Name()))
			}
		}
	}
	mmapkeys.Sweep(w.disk.root)
}
