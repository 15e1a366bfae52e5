package missedjobs

import (
	"sync"
	"time"
)

const (
	tickEvery = time.Second      // how often it is noted that this process runs
	readAfter = 10 * time.Second // what came while it stood still is read within this
)

// standstill knows when this process stood still last: it was stopped (SIGSTOP, a frozen cgroup), or its host was
// suspended. What its master published meanwhile is read afterwards.
type standstill struct {
	now     func() time.Time
	elapsed func() time.Duration // counts that time
	least   func() time.Duration // a shorter one does not matter

	mu       sync.Mutex
	ran      time.Duration // when this process was last known to run
	from, to time.Time     // of the last one
}

// begin says that this process has run until now.
func (s *standstill) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran = s.elapsed()
}

// look notes that this process runs, and returns when it stood still.
func (s *standstill) look() (from, to time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.ran
	s.ran = s.elapsed()
	if gap := s.ran - was; gap > s.least() {
		s.to = s.now()
		s.from = s.to.Add(-gap)
	}
	return s.from, s.to
}

// Overdue reports whether the master made a publication that has come just now while this process stood still, so long
// before its end that the command line has given up. A publication whose id does not tell the time is not.
func (r *Republisher) Overdue(jid string) bool {
	from, to := r.stood.look()
	made, ok := parseID(jid)
	if !ok || r.cfg.Now().After(to.Add(readAfter)) { // later parts of a batch may have the id of the first one
		return false
	}
	return made.After(from.Add(-sendTime)) && made.Before(to.Add(-r.cfg.JobTimeout()))
}
