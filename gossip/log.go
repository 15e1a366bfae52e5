package gossip

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds on memberlist's lines: it writes one for each bad packet, and anyone can send those in a member's name.
const (
	linesPerSecond = 5
	linesBurst     = 50
	maxLine        = 512 // bytes
)

// logWriter turns memberlist's lines ("[WARN] memberlist: text") into records.
type logWriter struct {
	log   *slog.Logger
	lines *rate.Limiter

	mu      sync.Mutex
	skipped int
	closed  bool
}

func newLogWriter(log *slog.Logger) *logWriter {
	return &logWriter{log: log, lines: rate.NewLimiter(linesPerSecond, linesBurst)}
}

// Write implements io.Writer for the log package.
func (w *logWriter) Write(line []byte) (int, error) {
	level, text := parseLine(line)
	ctx := context.Background()
	if !w.log.Enabled(ctx, level) {
		return len(line), nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	skipped, ok := w.allowLine(time.Now())
	if !ok {
		return len(line), nil
	}
	attrs := []slog.Attr{slog.String("reason", text)}
	if skipped > 0 {
		attrs = append(attrs, slog.Int("skipped", skipped))
	}
	w.log.LogAttrs(ctx, level, "gossip protocol", attrs...)
	return len(line), nil
}

// close ends it: when it returns nothing is written any more. memberlist's goroutines outlive its Shutdown, which waits
// for none.
func (w *logWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// allowLine asks for room for one line, and tells how many had none before. w.mu is held.
func (w *logWriter) allowLine(now time.Time) (skipped int, ok bool) {
	if w.closed {
		return 0, false
	}
	if !w.lines.AllowN(now, 1) {
		w.skipped++
		return 0, false
	}
	skipped, w.skipped = w.skipped, 0
	return skipped, true
}

// parseLine splits off the level. Most of what memberlist calls an error is news about the network, which Members shows
// better, so each level is one lower here.
func parseLine(line []byte) (slog.Level, string) {
	line = bytes.TrimSpace(line)
	level := slog.LevelDebug
	if end := bytes.IndexByte(line, ']'); end > 0 && line[0] == '[' {
		switch string(line[1:end]) {
		case "ERR", "ERROR":
			level = slog.LevelWarn
		case "WARN":
			level = slog.LevelInfo
		}
		line = line[end+1:]
	}
	text := bytes.TrimPrefix(bytes.TrimSpace(line), []byte("memberlist: "))
	return level, string(text[:min(len(text), maxLine)])
}
