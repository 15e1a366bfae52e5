package saltlog

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// repeatEvery is how often one minion is warned of.
	repeatEvery = time.Minute
	// rememberFor is how long Twins lists a minion after its last such return.
	rememberFor = time.Hour
	// maxTwins bounds the minions remembered; the one that was seen longest ago makes room.
	maxTwins = 256
)

// Log writes the lines. Create it with New. Methods of a nil Log do nothing.
type Log struct {
	log  *slog.Logger
	info func() bool
	now  func() time.Time

	mu    sync.Mutex
	twins map[string]*Twin
}

// Twin is a minion of which two returns for one job differed: two hosts with the same id and key, as a rule.
type Twin struct {
	Minion, JID string
	At          time.Time // of the last one

	said    time.Time // when it was logged last
	skipped int       // since then
}

// Outcome is what a return says of itself, as Python writes it.
type Outcome struct{ Retcode, Success string }

// New returns a Log. info says whether the local master logs what has the level info.
func New(log *slog.Logger, info func() bool) *Log {
	return &Log{log: log, info: info, now: time.Now, twins: map[string]*Twin{}}
}

// Informs says whether the local master logs what has the level info (its options log_level_logfile and log_level).
func Informs(o interface{ Text(name string) string }) bool {
	switch cmp.Or(o.Text("log_level_logfile"), o.Text("log_level")) {
	case "all", "garbage", "trace", "debug", "profile", "info":
		return true
	}
	return false
}

// SignIn says what a master says of a minion with an accepted key (salt/channel/server.py _auth).
func (l *Log) SignIn(minion string) {
	if l == nil || !l.info() {
		return
	}
	l.log.Info("Authentication request from " + minion)
	l.log.Info("Authentication accepted from " + minion)
}

// Return says what a master says of a return (salt/utils/job.py store_job).
func (l *Log) Return(minion, jid string) {
	if l == nil || !l.info() {
		return
	}
	l.log.Info(fmt.Sprintf("Got return from %s for job %s", minion, jid))
}

// Differs says what a master says of a second return that is not the first (salt/returners/local_cache.py _log_duplicate_return).
func (l *Log) Differs(minion, jid string, first, second Outcome) {
	if l == nil {
		return
	}
	skipped, say := l.note(minion, jid)
	if !say {
		return
	}
	var more []any
	if skipped > 0 {
		more = []any{"suppressed", skipped}
	}
	l.log.Warn(fmt.Sprintf("Duplicate return from minion %s for jid %s with a *differing* payload; ignoring the second return. This may indicate "+
		"two minions sharing the same id, a misconfigured returner, or in rare cases a replay attempt. Cached retcode=%s success=%s; new "+
		"retcode=%s success=%s.", minion, jid, first.Retcode, first.Success, second.Retcode, second.Success), more...)
}

// note remembers a minion, and says whether it is to be logged and how often it was not since the last time.
func (l *Log) note(minion, jid string) (skipped int, say bool) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.twins[minion]
	if t == nil {
		if len(l.twins) >= maxTwins {
			delete(l.twins, l.oldest())
		}
		t = &Twin{Minion: minion}
		l.twins[minion] = t
	}
	t.JID, t.At = jid, now
	if !t.said.IsZero() && now.Sub(t.said) < repeatEvery {
		t.skipped++
		return 0, false
	}
	skipped, t.said, t.skipped = t.skipped, now, 0
	return skipped, true
}

// oldest wants mu.
func (l *Log) oldest() (minion string) {
	var at time.Time
	for id, t := range l.twins {
		if minion == "" || t.At.Before(at) {
			minion, at = id, t.At
		}
	}
	return minion
}

// Twins lists the minions of which two returns for one job have differed lately, the latest first.
func (l *Log) Twins() (out []Twin) {
	if l == nil {
		return nil
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, t := range l.twins {
		if now.Sub(t.At) >= rememberFor {
			delete(l.twins, id)
			continue
		}
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Twin) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Minion, b.Minion)) })
	return out
}
