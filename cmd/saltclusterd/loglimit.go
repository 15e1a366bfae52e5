package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Strangers and broken peers can cause many of our messages at will. Each message may fill so many lines and no more;
// the messages themselves are constants, so there are few of them.
const (
	logBurst   = 100              // lines of one message at once ...
	logEvery   = time.Second      // ... and one more in this time
	logTexts   = 1024             // messages told apart; any further ones count as one
	logSummary = 10 * time.Second // how often lines left out are told of that no later line of the message has
)

// limitHandler leaves lines out when one message comes too often, and says how many. Debugging is not limited.
type limitHandler struct {
	slog.Handler
	shared *logLimits
}

// logLimits is what a handler and those derived from it share.
type logLimits struct {
	now func() time.Time

	mu      sync.Mutex
	texts   map[logText]*logAllowance
	told    time.Time
	summary slog.Handler // without the attributes of anyone
}

type logText struct {
	level slog.Level
	text  string
}

type logAllowance struct {
	tokens float64
	last   time.Time
	left   int // lines left out since the last one
}

func limitLog(h slog.Handler, now func() time.Time) slog.Handler {
	return &limitHandler{h, &logLimits{now: now, texts: map[logText]*logAllowance{}, told: now(), summary: h}}
}

// Handle implements slog.Handler.
func (h *limitHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return h.Handler.Handle(ctx, r)
	}
	left, ok, quiet := h.shared.allowLine(logText{r.Level, r.Message})
	for text, n := range quiet {
		s := slog.NewRecord(r.Time, text.level, "log lines left out", 0)
		s.AddAttrs(slog.String("message", text.text), slog.Int("suppressed", n))
		_ = h.shared.summary.Handle(ctx, s) // what matters is the record in hand
	}
	if !ok {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("suppressed", left))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *limitHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limitHandler{h.Handler.WithAttrs(attrs), h.shared}
}

// WithGroup implements slog.Handler.
func (h *limitHandler) WithGroup(name string) slog.Handler {
	return &limitHandler{h.Handler.WithGroup(name), h.shared}
}

// allowLine says whether a line may be written and how many of it were left out before. Now and then quiet tells of
// messages that have not come again since some of their lines were left out.
func (l *logLimits) allowLine(t logText) (left int, ok bool, quiet map[logText]int) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.findText(&t, now)
	a.tokens = min(logBurst, a.tokens+now.Sub(a.last).Seconds()/logEvery.Seconds())
	a.last = now
	if a.tokens < 1 {
		a.left++
	} else {
		a.tokens--
		left, a.left, ok = a.left, 0, true
	}
	if now.Sub(l.told) >= logSummary {
		quiet, l.told = l.collectQuiet(t, now), now
	}
	return left, ok, quiet
}

func (l *logLimits) findText(t *logText, now time.Time) *logAllowance {
	if _, known := l.texts[*t]; !known && len(l.texts) >= logTexts {
		t.text = ""
	}
	a := l.texts[*t]
	if a == nil {
		a = &logAllowance{tokens: logBurst, last: now}
		l.texts[*t] = a
	}
	return a
}

// collectQuiet takes what was left out of messages other than t that have been quiet for a while.
func (l *logLimits) collectQuiet(t logText, now time.Time) map[logText]int {
	var quiet map[logText]int
	for other, a := range l.texts {
		if other == t || a.left == 0 || now.Sub(a.last) < logEvery {
			continue
		}
		if quiet == nil {
			quiet = map[logText]int{}
		}
		quiet[other], a.left = a.left, 0
	}
	return quiet
}
