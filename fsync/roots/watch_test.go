package roots

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
)

// Without hints of the kernel changes are found all the same, by looking.
func TestWithoutHints(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.start("b")
	a.cfg.Timing.Poll = a.cfg.Timing.Retry
	store, err := New(a.cfg)
	require.NoError(t, err)
	store.hooks.blind = true
	a.openStore(store)
	a.write("deep/in/here", "1")
	w.await("b has it", func() bool { return b.has("deep/in/here", "1") })
	a.write("deep/in/here", "2")
	w.await("b has the edit", func() bool { return b.has("deep/in/here", "2") })
	if a.store.Status().Watching {
		t.Error("it says that it gets hints")
	}
}

// lines is a log that a test reads.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// When the kernel has lost hints everything is looked at, and somebody is told.
func TestLostHints(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	var log lines
	a.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	a.cfg.Timing.Scan = time.Hour
	a.open()
	a.write("f", "1")
	w.await("a knows its file", func() bool { return a.store.Status().Stable(1) })
	last := a.store.Status().LastScan
	a.store.watcher.Errors <- fsnotify.ErrEventOverflow
	w.await("another look", func() bool { return a.store.Status().LastScan.After(last) })
	if log.count("level=WARN") != 1 || log.count("were lost") != 1 {
		t.Errorf("log: %s", log.buf.String())
	}
}

// Directories for which the kernel gives no hints are looked at from time to time, and so are those for which it did;
// when it gives them again, they are taken.
func TestLimitOfHints(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.start("b")
	var log lines
	a.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	a.cfg.Timing.Poll = a.cfg.Timing.Retry
	store, err := New(a.cfg)
	require.NoError(t, err)
	var full atomic.Bool
	full.Store(true)
	store.hooks.limit = func() error {
		if full.Load() {
			return unix.ENOSPC
		}
		return nil
	}
	for _, dir := range []string{"x", "y", "z"} {
		a.write(dir+"/f", "1")
	}
	a.openStore(store)
	for _, text := range []string{"1", "2"} {
		a.write("x/f", text)
		w.await("b has it", func() bool { return b.has("x/f", text) })
	}
	if log.count("does not report changed files") == 0 || log.count(unix.ENOSPC.Error()) == 0 {
		t.Errorf("log: %s", log.buf.String())
	}
	full.Store(false)
	w.await("hints again", func() bool { return a.store.Status().Watching })
	a.write("y/f", "3")
	w.await("b has that, too", func() bool { return b.has("y/f", "3") })
}

// A directory whose path no system call takes gets no hints; all others do.
func TestWatch_PathTooLong(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.start("b")
	var log lines
	a.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	a.cfg.Timing.Scan = time.Hour
	a.open()
	a.write("f", "1")
	w.await("b has it", func() bool { return b.has("f", "1") })
	fd, err := unix.Open(a.path("."), unix.O_DIRECTORY|unix.O_RDONLY, 0)
	require.NoError(t, err)
	for range 30 {
		name := strings.Repeat("x", 200)
		require.NoError(t, unix.Mkdirat(fd, name, 0o755))
		below, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_RDONLY, 0)
		require.NoError(t, errors.Join(err, unix.Close(fd)))
		fd = below
	}
	require.NoError(t, unix.Close(fd))
	w.await("both know it", func() bool { return a.store.Status().Stable(1) && b.store.Status().Stable(1) })
	a.write("f", "2")
	w.await("b has the edit", func() bool { return b.has("f", "2") })
	if !a.store.Status().Watching || log.count("does not report changed files") != 0 {
		t.Errorf("log: %s", log.buf.String())
	}
}

// A log in the roots to which lines are added all the time makes a revision from time to time, and none for each line.
func TestStore_GrowingLogFewRevisions(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.cfg.Timing.Quiet, a.cfg.Timing.Brief = 150*time.Millisecond, time.Millisecond
	a.open()
	a.write("log", "")
	w.await("a knows it", func() bool { return a.store.Status().Stable(1) })
	const lines = 200
	for i := range lines {
		a.write("log", strings.Repeat("line\n", i+1))
		time.Sleep(10 * time.Millisecond) // as a log is written
	}
	w.await("all of it", func() bool {
		return a.has("log", strings.Repeat("line\n", lines)) && a.store.Status().Stable(1)
	})
	if n := w.count(); n > hurries+lines/8 {
		t.Errorf("%d revisions of %d lines", n, lines)
	}
}
