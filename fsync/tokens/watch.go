package tokens

import (
	"github.com/fsnotify/fsnotify"

	"saltclusterd/fsync/dirid"
)

// watch hears of changes in the directory. What it says is a hint; without it the scan finds them.
type watch struct {
	disk    disk
	w       *fsnotify.Watcher
	watched dirid.ID
}

func newWatch(d disk) *watch {
	w, err := fsnotify.NewBufferedWatcher(1024)
	if err != nil { // the kernel gives no more
		w = nil
	}
	return &watch{disk: d, w: w}
}

// ensureWatch watches the directory that is there now, which need not be that of the last time.
func (w *watch) ensureWatch() {
	id := w.disk.id()
	if w.w == nil || id == w.watched {
		return
	}
	path := w.disk.path()
	_ = w.w.Remove(path)
	if w.watched = (dirid.ID{}); id != w.watched && w.w.Add(path) == nil {
		w.watched = id
	}
}

func (w *watch) hints() <-chan fsnotify.Event {
	if w.w == nil {
		return nil
	}
	return w.w.Events
}

func (w *watch) errors() <-chan error {
	if w.w == nil {
		return nil
	}
	return w.w.Errors
}

// drainHints drops what a scan that is about to begin will see anyway.
func (w *watch) drainHints() {
	for {
		select {
		case <-w.w.Events:
		case <-w.w.Errors: // too many at once, perhaps
		default:
			return
		}
	}
}

func (w *watch) close() {
	if w.w != nil {
		_ = w.w.Close()
	}
}
