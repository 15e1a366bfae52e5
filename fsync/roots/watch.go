package roots

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/signal"
)

// startWatch begins to listen to the kernel. The channel gets a value when it may be worthwhile to scan.
func (s *Store) startWatch() <-chan struct{} {
	news := make(chan struct{}, 1)
	w, err := fsnotify.NewWatcher()
	if s.hooks.blind && err == nil {
		err = errors.Join(errors.New("switched off"), w.Close())
	}
	if err != nil {
		s.log.Warn("the kernel does not report changed files; scanning for them periodically", "err", err)
		return news
	}
	s.mu.Lock()
	s.watching, s.watcher = true, w
	s.mu.Unlock()
	s.wg.Go(func() { s.listen(w, news) })
	return news
}

// watch asks for hints about a directory that is about to be read. The reading sees what was made in it before.
func (s *Store) watch(top, path string) {
	s.mu.Lock()
	watching := s.watching
	s.mu.Unlock()
	if !watching {
		return
	}
	dir := filepath.Join(top, path)
	var err error
	if s.hooks.limit != nil {
		err = s.hooks.limit()
	}
	if err == nil {
		err = s.watcher.Add(dir) // each time: the directory may be another one than at the last scan
	}
	switch {
	case err == nil, slotfs.Gone(err):
		return
	case errors.Is(err, unix.ENAMETOOLONG): // no program opens it by its path; a scan sees what changes there
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching { // once, whatever the number of directories
		s.log.Warn("the kernel does not report changed files; scanning for them periodically", "path", dir, "err",
			err)
	}
	s.watching, s.unwatched = false, time.Now()
}

// watchAgain tries to get hints once more after they were refused: limits of the kernel may have been raised. It is for
// the loop, before it looks at all directories.
func (s *Store) watchAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watcher != nil && !s.watching && time.Since(s.unwatched) > s.cfg.Timing.Scan {
		s.watching = true
	}
}

// fewHints are what saving a file makes.
const fewHints = 16

// hurries bounds how often files that were saved are looked at in a hurry: so often in a row, and once more each
// second. A log in the roots, to which lines are added all the time, would make twenty revisions a second otherwise.
const hurries = 20

// listen turns events into news, once it has been quiet for a moment.
func (s *Store) listen(w *fsnotify.Watcher, news chan<- struct{}) {
	defer w.Close()
	t := s.cfg.Timing
	var first time.Time
	haste := rate.NewLimiter(1, hurries)
	count, hurried := 0, false
	quiet := time.NewTimer(time.Hour)
	defer quiet.Stop()
	for {
		select {
		case <-s.run.Done():
			return
		case _, ok := <-w.Events:
			if !ok {
				return
			}
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			s.log.Warn("reports of changed files were lost; scanning all of them", "err", err)
		case <-quiet.C:
			first, count = time.Time{}, 0
			signal.Send(news)
			quiet.Reset(time.Hour)
			continue
		}
		now := time.Now()
		if first.IsZero() {
			first, hurried = now, haste.AllowN(now, 1)
		}
		pause := t.Quiet
		if count++; hurried && count <= fewHints {
			pause = t.Brief
		}
		quiet.Reset(min(pause, max(first.Add(t.QuietMax).Sub(now), 0)))
	}
}
