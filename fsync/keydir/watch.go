package keydir

import (
	"errors"
	"fmt"

	"github.com/fsnotify/fsnotify"

	"saltclusterd/fsync/dirid"
)

// watcher hears of changes in the directories. What it says is a hint: it tells where to look, not what is there.
type watcher struct {
	w       *fsnotify.Watcher
	watched [places]dirid.ID
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

// ensure watches the directories that are there now, which need not be those of the last time.
func (w *watcher) ensure(d *disk) error {
	if w == nil {
		return errNoWatcher
	}
	var errs []error
	for p := range places {
		id := dirid.Of(d.dir(p))
		if id != (dirid.ID{}) && id == w.watched[p] {
			continue
		}
		_ = w.w.Remove(d.dir(p)) // of the directory that was there before
		if err := w.w.Add(d.dir(p)); err != nil {
			errs = append(errs, fmt.Errorf("watch %s: %w", p, err))
			continue
		}
		w.watched[p] = id
	}
	return errors.Join(errs...)
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
