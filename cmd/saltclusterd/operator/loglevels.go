package operator

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// LogLevels are the values of the option log_level.
var LogLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warning": slog.LevelWarn, "error": slog.LevelError,
}

// LogLevel is how much this process logs at the moment. It implements admin.Logger.
type LogLevel struct {
	configured string // level
	log        *slog.Logger

	mu    sync.Mutex
	level *slog.LevelVar // nil: fixed
	name  string         // empty: as configured
	until time.Time
	timer *time.Timer
}

// NewLogLevel returns a LogLevel that is fixed until Control is called.
func NewLogLevel(configured string, log *slog.Logger) *LogLevel {
	return &LogLevel{configured: configured, log: log}
}

// Control makes l change the level of the process's logger.
func (l *LogLevel) Control(level *slog.LevelVar) { l.level = level }

// LogLevel implements admin.Logger.
func (l *LogLevel) LogLevel(context.Context) (adminapi.LogLevel, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.report(), nil
}

func (l *LogLevel) report() adminapi.LogLevel {
	out := adminapi.LogLevel{Level: l.name, Configured: l.configured, Until: l.until}
	if l.name == "" {
		out.Level = out.Configured
	}
	return out
}

// SetLogLevel implements admin.Logger.
func (l *LogLevel) SetLogLevel(_ context.Context, r adminapi.SetLogLevelRequest) (adminapi.LogLevel, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := LogLevels[r.Level]; !known && r.Level != "" {
		return adminapi.LogLevel{}, adminapi.Errorf(
			adminapi.CodeInvalid, "debug, info, warning or error", "invalid level %q", r.Level)
	}
	if l.level == nil {
		return adminapi.LogLevel{}, adminapi.Errorf(adminapi.CodeUnavailable, "", "the level of this process is fixed")
	}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.setLevel(r.Level)
	if r.For > 0 && r.Level != "" {
		l.until = time.Now().Add(r.For).UTC()
		var mine *time.Timer
		mine = time.AfterFunc(r.For, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.timer == mine { // else another level was set in the meantime
				l.setLevel("")
			}
		})
		l.timer = mine
	}
	return l.report(), nil
}

// setLevel puts a level in force without a limit; the caller holds the lock.
func (l *LogLevel) setLevel(name string) {
	l.name, l.until = name, time.Time{}
	if name == "" {
		name = l.configured
	}
	l.level.Set(LogLevels[name])
	l.log.Info("log level set", "level", name)
}
