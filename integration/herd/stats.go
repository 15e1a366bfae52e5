package herd

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// Stats is how a herd fares.
type Stats struct {
	Minions    int
	Subscribed int // connected to 4505 now
	SigningIn  int // now

	SignIns      int // that were accepted
	SignInTries  int // requests sent for sign-ins
	SignInFailed int // given up: what a stock minion calls "failed to authenticate"
	Pended       int // heard that their key is pending
	Restarts     int // started over after that

	Disconnects int       // lost 4505
	LastServed  time.Time // when the last minion, so far, got 4505 (back)
	Refused     int       // attempts to subscribe that failed
	Unreadable  int       // publications that the key held did not open
	Discarded   int       // of these, that a new sign-in did not help
	Stale       int       // publications with a serial that does not grow
	BadLoads    int       // requests answered "bad load"
	Retries     int       // requests repeated after a timeout
	ReturnsLost int       // given up
	Silent      int       // start events and registrations given up

	SignInTimes []time.Duration // sorted, since the last Reset
	Outages     []time.Duration // from losing 4505 to having it again, sorted, since the last Reset

	Wrong []error // what a stock minion would not accept; the first few
}

// Job is what became of one publication in the herd.
type Job struct {
	JID         string
	Heard       int
	Acked       int // returns that the master has acknowledged
	FirstHeard  time.Time
	LastHeard   time.Time
	LastAck     time.Time
	LastEnd     time.Time // the last return acknowledged or given up
	ReturnsLost int
}

// maxWrong bounds the complaints that are kept; maxJobs the jobs.
const (
	maxWrong = 20
	maxJobs  = 100_000
)

// counters are Stats in the making.
type counters struct {
	mu    sync.Mutex
	s     Stats
	on    []bool      // by minion: subscribed
	since []time.Time // by minion: lost 4505 then
	jobs  map[string]*jobCount
}

type jobCount struct {
	Job
	who []bool // by minion: heard it
}

func newCounters(n int) *counters {
	return &counters{s: Stats{Minions: n}, on: make([]bool, n), since: make([]time.Time, n), jobs: map[string]*jobCount{}}
}

// count changes the figures under the lock.
func (c *counters) count(f func(s *Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

func (c *counters) restarted()      { c.count(func(s *Stats) { s.Restarts++ }) }
func (c *counters) refused()        { c.count(func(s *Stats) { s.Refused++ }) }
func (c *counters) unreadable()     { c.count(func(s *Stats) { s.Unreadable++ }) }
func (c *counters) discarded()      { c.count(func(s *Stats) { s.Discarded++ }) }
func (c *counters) stale()          { c.count(func(s *Stats) { s.Stale++ }) }
func (c *counters) badLoad()        { c.count(func(s *Stats) { s.BadLoads++ }) }
func (c *counters) retried()        { c.count(func(s *Stats) { s.Retries++ }) }
func (c *counters) announceLost()   { c.count(func(s *Stats) { s.Silent++ }) }
func (c *counters) pended()         { c.count(func(s *Stats) { s.Pended++ }) }
func (c *counters) try(int)         { c.count(func(s *Stats) { s.SignInTries++ }) }
func (c *counters) signingIn(n int) { c.count(func(s *Stats) { s.SigningIn += n }) }

func (c *counters) signedIn(took time.Duration) {
	c.count(func(s *Stats) {
		s.SignIns++
		s.SignInTimes = append(s.SignInTimes, took)
	})
}

func (c *counters) signInFailed(err error) {
	c.count(func(s *Stats) { s.SignInFailed++ })
	c.wrong(err)
}

func (c *counters) wrong(err error) {
	c.count(func(s *Stats) {
		if len(s.Wrong) < maxWrong {
			s.Wrong = append(s.Wrong, err)
		}
	})
}

func (c *counters) subscribed(minion int) {
	c.count(func(s *Stats) {
		s.Subscribed++
		s.LastServed = time.Now()
		if c.on[minion] = true; !c.since[minion].IsZero() {
			s.Outages = append(s.Outages, time.Since(c.since[minion]))
		}
	})
}

func (c *counters) unsubscribed(minion int) {
	c.count(func(s *Stats) {
		s.Subscribed--
		s.Disconnects++
		c.on[minion], c.since[minion] = false, time.Now()
	})
}

// job returns the record of a job; the caller holds mu.
func (c *counters) job(jid string) *jobCount {
	j := c.jobs[jid]
	if j == nil && len(c.jobs) < maxJobs {
		j = &jobCount{Job: Job{JID: jid, FirstHeard: time.Now()}, who: make([]bool, len(c.on))}
		c.jobs[jid] = j
	}
	return j
}

func (c *counters) heard(jid string, minion int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.job(jid); j != nil {
		j.Heard++
		j.LastHeard, j.who[minion] = time.Now(), true
	}
}

func (c *counters) acked(jid string, _ int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.job(jid); j != nil {
		j.Acked++
		j.LastAck = time.Now()
		j.LastEnd = j.LastAck
	}
}

func (c *counters) returnLost(jid string, err error) {
	c.mu.Lock()
	c.s.ReturnsLost++
	if j := c.job(jid); j != nil {
		j.ReturnsLost++
		j.LastEnd = time.Now()
	}
	c.mu.Unlock()
	c.wrong(err)
}

// Stats returns the figures of now.
func (h *Herd) Stats() Stats {
	c := h.stats
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.SignInTimes = slices.Sorted(slices.Values(s.SignInTimes))
	s.Outages, s.Wrong = slices.Sorted(slices.Values(s.Outages)), slices.Clone(s.Wrong)
	return s
}

// Reset forgets the times. It is called when a measurement begins.
func (h *Herd) Reset() {
	h.stats.count(func(s *Stats) { s.SignInTimes, s.Outages = nil, nil })
}

// Job returns what became of a publication so far.
func (h *Herd) Job(jid string) Job {
	h.stats.mu.Lock()
	defer h.stats.mu.Unlock()
	if j := h.stats.jobs[jid]; j != nil {
		return j.Job
	}
	return Job{JID: jid}
}

// Missed lists the minions that have not heard a job.
func (h *Herd) Missed(jid string) (ids []string) {
	all := h.IDs()
	h.stats.mu.Lock()
	defer h.stats.mu.Unlock()
	j := h.stats.jobs[jid]
	for i, id := range all {
		if j == nil || !j.who[i] {
			ids = append(ids, id)
		}
	}
	return ids
}

// Err is what a stock minion would not have accepted.
func (s Stats) Err() error { return errors.Join(s.Wrong...) }

// Quantile of sorted durations; 0 when there are none.
func Quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[min(len(d)-1, int(q*float64(len(d))))]
}
