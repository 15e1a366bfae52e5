package keydir

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"saltclusterd/fsync/dirid"
)

// watcher hears of changes in the directories. What it says is a hint: it tells where to look, not what is there.
type watcher struct {
	w       *fsnotify.Watcher
	watched [places + 1]dirid.ID // the last one is of pki_dir, with a store
}

// newWatcher returns an error when the kernel gives no more watchers.
func newWatcher() (*watcher, error) {
	w, err := fsnotify.NewBufferedWatcher(1024)
	if err != nil {
		return nil, fmt.Errorf("watch key directories: %w", err)
	}
	return &watcher{w: w}, nil
}

func (w *watcher) close() {
	if w != nil {
		_ = w.w.Close()
	}
}

// watchDirs watches the directories that are there now, which need not be those of the last time. If beside is set, the
// files beside them also count, and it watches the directory that they are all in.
func (w *watcher) watchDirs(d *disk, beside bool) error {
	if w == nil {
		return errNoWatcher
	}
	var errs []error
	for p := range places {
		errs = append(errs, w.watchDir(int(p), d.dirPath(p)))
	}
	if beside {
		errs = append(errs, w.watchDir(int(places), d.root))
	}
	return errors.Join(errs...)
}

func (w *watcher) watchDir(i int, dir string) error {
	id := dirid.Of(dir)
	if id != (dirid.ID{}) && id == w.watched[i] {
		return nil
	}
	_ = w.w.Remove(dir) // of the directory that was there before
	if err := w.w.Add(dir); err != nil {
		return fmt.Errorf("watch %s: %w", filepath.Base(dir), err)
	}
	w.watched[i] = id
	return nil
}

var errNoWatcher = errors.New("no inotify watcher")

func (w *watcher) events() <-chan fsnotify.Event {
	if w == nil {
		return nil
	}
	return w.w.Events
}

func (w *watcher) errors() <-chan error {
	if w == nil {
		return nil
	}
	return w.w.Errors
}
