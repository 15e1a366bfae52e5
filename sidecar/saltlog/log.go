package saltlog

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// repeatEvery is how often one minion is warned of.
	repeatEvery = time.Minute
	// rememberFor is how long DifferingReturns lists a minion after its last such return.
	rememberFor = time.Hour
	// maxRemembered bounds the warnings remembered; the one that came longest ago makes room.
	maxRemembered = 256
)

// Log writes the lines. Create it with New. Methods of a nil Log do nothing.
type Log struct {
	log  *slog.Logger
	info func() bool
	now  func() time.Time

	mu       sync.Mutex
	warnings map[about]*warning
}

// about is what one line a minute is for.
type about struct {
	what   kind
	minion string
}

type kind uint8

const (
	differs kind = iota
	unsigned
	forged
)

type warning struct {
	jid     string
	at      time.Time // the last one
	said    time.Time // when one was logged last
	skipped int       // since then
}

// DifferingReturn is a minion of which two returns for one job differed: two hosts with the same id and key, as a rule.
type DifferingReturn struct {
	Minion, JID string
	At          time.Time // of the last one
}

// Outcome is what a return says of itself, as Python writes it.
type Outcome struct{ Retcode, Success string }

// New returns a Log. info says whether the local master logs what has the level info.
func New(log *slog.Logger, info func() bool) *Log {
	return &Log{log: log, info: info, now: time.Now, warnings: map[about]*warning{}}
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

// Differs says what a master says of a second return that is not the first (salt/returners/local_cache.py
// _log_duplicate_return).
func (l *Log) Differs(minion, jid string, first, second Outcome) {
	if l == nil {
		return
	}
	l.warnLimited(about{differs, minion}, jid, slog.LevelWarn,
		fmt.Sprintf("Duplicate return from minion %s for jid %s with a *differing* payload; "+
			"ignoring the second return. This may indicate two minions sharing the same id, a misconfigured returner, or in rare cases a replay "+
			"attempt. Cached retcode=%s success=%s; new retcode=%s success=%s.",
			minion, jid, first.Retcode, first.Success, second.Retcode, second.Success))
}

// Unsigned says what a master says of a return without the signature that it demands (salt/master.py _return).
func (l *Log) Unsigned(minion string) {
	if l != nil {
		l.warnLimited(about{unsigned, minion}, "", slog.LevelError,
			"_return: Master is requiring minions to sign their messages, but there is no "+
				"signature in this payload from "+minion+".")
	}
}

// Forged says what a master says of a return whose signature is not the minion's (salt/master.py _return).
func (l *Log) Forged(minion string, dropped bool) {
	if l == nil || !dropped && !l.info() {
		return
	}
	text := "Failed to verify event signature from minion " + minion + "."
	if dropped {
		text += " drop_messages_signature_fail is enabled, dropping message from " + minion
	}
	l.warnLimited(about{forged, minion}, "", slog.LevelError, text)
}

// warnLimited logs, if that was not done about the same a moment ago.
func (l *Log) warnLimited(of about, jid string, level slog.Level, text string) {
	skipped, say := l.noteWarning(of, jid)
	if !say {
		return
	}
	var more []any
	if skipped > 0 {
		more = []any{"suppressed", skipped}
	}
	l.log.Log(context.Background(), level, text, more...)
}

// noteWarning remembers a warning, and says whether it is to be logged and how often it was not since the last time.
func (l *Log) noteWarning(of about, jid string) (skipped int, say bool) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.warnings[of]
	if w == nil {
		if len(l.warnings) >= maxRemembered {
			delete(l.warnings, l.oldestWarning())
		}
		w = &warning{}
		l.warnings[of] = w
	}
	w.jid, w.at = jid, now
	if !w.said.IsZero() && now.Sub(w.said) < repeatEvery {
		w.skipped++
		return 0, false
	}
	skipped, w.said, w.skipped = w.skipped, now, 0
	return skipped, true
}

// oldestWarning wants mu.
func (l *Log) oldestWarning() (of about) {
	var at time.Time
	for a, w := range l.warnings {
		if at.IsZero() || w.at.Before(at) {
			of, at = a, w.at
		}
	}
	return of
}

// DifferingReturns lists the minions of which two returns for one job have differed lately, the latest first.
func (l *Log) DifferingReturns() (out []DifferingReturn) {
	if l == nil {
		return nil
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for of, w := range l.warnings {
		if of.what == differs && now.Sub(w.at) < rememberFor {
			out = append(out, DifferingReturn{of.minion, w.jid, w.at})
		}
	}
	slices.SortFunc(out, func(a, b DifferingReturn) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Minion, b.Minion))
	})
	return out
}
