package consensus

import (
	"context"
	"io"
	"log"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"
)

// hcLogger gives raft's log records to slog. Raft's Info is about every
// connection and election step: it becomes Debug. So does what it has to say
// about a peer that does not answer, several times a second and also of one
// that is just joining: gossip and the status tell it once.
type hcLogger struct {
	log  *slog.Logger
	name string
	args []any
}

var _ hclog.Logger = hcLogger{}

// expected are messages about peers that are away, refused or not there yet.
var expected = []string{
	"failed to appendEntries to", "failed to heartbeat to", "failed to pipeline appendEntries",
	"failed to start pipeline replication to",
	"failed to contact", "failed to make requestVote RPC", "failed to decode incoming command", "failed to flush response",
	"peer has newer term, stopping replication", "appendEntries rejected, sending older logs",
	"failed to get previous log",
	"rejecting vote request since we have a leader", "rejecting pre-vote request since we have a leader",
	"rejecting vote request since node is not in configuration",
	"rejecting pre-vote request since node is not in configuration",
	"rejecting vote request since node is not a voter", "rejecting pre-vote request since node is not a voter",
	"heartbeat timeout reached, not part of a stable configuration or a non-voter, not triggering a leader election",
	"not part of stable configuration, aborting election", "no known peers, aborting election",
	"Election timeout reached, restarting election",
}

func slogLevel(l hclog.Level) slog.Level {
	switch l {
	case hclog.Warn:
		return slog.LevelWarn
	case hclog.Error:
		return slog.LevelError
	}
	return slog.LevelDebug
}

func (h hcLogger) Log(l hclog.Level, msg string, args ...any) {
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args[i] = f[0]
		}
	}
	at := slogLevel(l)
	if slices.Contains(expected, msg) {
		at = slog.LevelDebug
	}
	h.log.Log(context.Background(), at, "raft: "+msg, args...)
}

func (h hcLogger) Trace(msg string, args ...any) { h.Log(hclog.Trace, msg, args...) }
func (h hcLogger) Debug(msg string, args ...any) { h.Log(hclog.Debug, msg, args...) }
func (h hcLogger) Info(msg string, args ...any)  { h.Log(hclog.Info, msg, args...) }
func (h hcLogger) Warn(msg string, args ...any)  { h.Log(hclog.Warn, msg, args...) }
func (h hcLogger) Error(msg string, args ...any) { h.Log(hclog.Error, msg, args...) }

func (h hcLogger) isEnabled(l hclog.Level) bool {
	return h.log.Enabled(context.Background(), slogLevel(l))
}

func (h hcLogger) IsTrace() bool { return h.isEnabled(hclog.Trace) }
func (h hcLogger) IsDebug() bool { return h.isEnabled(hclog.Debug) }
func (h hcLogger) IsInfo() bool  { return h.isEnabled(hclog.Info) }
func (h hcLogger) IsWarn() bool  { return h.isEnabled(hclog.Warn) }
func (h hcLogger) IsError() bool { return h.isEnabled(hclog.Error) }

func (h hcLogger) ImpliedArgs() []any { return h.args }

func (h hcLogger) With(args ...any) hclog.Logger {
	return hcLogger{log: h.log.With(args...), name: h.name, args: append(h.args[:len(h.args):len(h.args)], args...)}
}

func (h hcLogger) Name() string { return h.name }

func (h hcLogger) Named(name string) hclog.Logger {
	if h.name != "" {
		name = h.name + "." + name
	}
	return h.ResetNamed(name)
}

func (h hcLogger) ResetNamed(name string) hclog.Logger {
	h.name = name
	return h
}

// SetLevel implements hclog.Logger; the slog handler decides alone.
func (hcLogger) SetLevel(hclog.Level) {}

func (h hcLogger) GetLevel() hclog.Level {
	for _, l := range []hclog.Level{hclog.Debug, hclog.Warn} {
		if h.isEnabled(l) {
			return l
		}
	}
	return hclog.Error
}

func (h hcLogger) StandardLogger(o *hclog.StandardLoggerOptions) *log.Logger {
	return log.New(h.StandardWriter(o), "", 0)
}

func (h hcLogger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer {
	return slog.NewLogLogger(h.log.Handler(), slog.LevelDebug).Writer()
}
