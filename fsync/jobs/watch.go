package jobs

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A job in which something happened is looked at again and again, ever less often; then only scans see it.
const (
	watchFor   = time.Hour
	watchMost  = 15 * time.Second // between two looks
	maxWatched = 20_000
)

// watch is a job of this node's that may still change.
type watch struct {
	since  time.Time // of the last change
	stored time.Time // of the last return that came by Stored
	next   time.Time
}

// watch makes a job be looked at. s.mu is not held.
func (s *Store) watch(jid string, stored bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watched[jid]
	if w == nil {
		if len(s.watched) >= maxWatched {
			return // scans see it
		}
		w = &watch{}
		s.watched[jid] = w
	}
	w.since, w.next = now, now.Add(s.cfg.Timing.Quiet)
	if stored {
		w.stored = now
	}
}

// published sends the head of a job that was just made here.
func (s *Store) published(jid string) {
	targets := s.targets(jid)
	if len(targets) == 0 {
		return
	}
	f, err := os.Open(s.disk.path(jid))
	if err != nil {
		return // with nothing there, there is nothing to tell
	}
	defer f.Close()
	fd := int(f.Fd())
	var items []item
	for _, name := range []string{noCacheFile, minionsFile, loadFile} {
		if it, ok := s.disk.head(fd, name); ok {
			items = append(items, it)
		}
	}
	var st unix.Stat_t
	if unix.Fstatat(fd, jidFile, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return
	}
	take := func(r *record) error {
		for _, p := range targets {
			p.enqueue(r)
		}
		return nil
	}
	_ = s.disk.fetch(jid, st.Mtim.Nano(), items, take, s.skipped(jid))
}

// skipped tells of items that cannot be read.
func (s *Store) skipped(jid string) func(item, error) {
	return func(it item, err error) {
		if !errors.Is(err, fs.ErrNotExist) {
			s.fail("read", jid, err)
		}
	}
}

// lookAtWatched looks at jobs whose turn it is, and makes those dirty that have changed.
func (s *Store) lookAtWatched() {
	now := time.Now()
	var due []string
	s.mu.Lock()
	for jid, w := range s.watched {
		switch {
		case now.Sub(w.since) > watchFor:
			delete(s.watched, jid)
		case !now.Before(w.next):
			w.next = now.Add(min(watchMost, max(s.cfg.Timing.Poll, now.Sub(w.since)/4)))
			due = append(due, jid)
		}
	}
	s.mu.Unlock()
	for _, jid := range due {
		if s.Closed() != nil {
			return
		}
		if s.changed(jid) {
			s.tell(jid)
			s.metrics.news.Inc()
		}
	}
}

// changed looks at a job and says whether there is something new in it.
func (s *Store) changed(jid string) bool {
	s.index.mu.Lock()
	j := s.index.jobs[jid]
	if j == nil {
		s.index.mu.Unlock()
		s.unwatch(jid)
		return false
	}
	was := *j
	s.index.mu.Unlock()
	if !was.stale && was.there {
		var st unix.Stat_t
		if err := unix.Stat(s.disk.path(jid), &st); err == nil && st.Mtim.Nano() == was.dir {
			return false
		}
	}
	look, err := s.disk.look(jid)
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if j = s.index.jobs[jid]; j == nil {
		return false
	}
	if err != nil {
		if gone(err) && j.there {
			s.index.drop(j)
		}
		return false
	}
	return s.index.note(j, look) && j.own
}

func (s *Store) unwatch(jid string) {
	s.mu.Lock()
	delete(s.watched, jid)
	s.mu.Unlock()
}

// tell makes a job dirty for its replicas, and keeps an eye on it.
func (s *Store) tell(jid string) {
	for _, p := range s.targets(jid) {
		p.Add(jid)
	}
	s.mu.Lock()
	if w := s.watched[jid]; w != nil {
		w.since = time.Now()
	}
	s.mu.Unlock()
}
