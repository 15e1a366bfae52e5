package daemon

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

// logging is how much is logged at the moment. A process that takes over begins with what is configured.
type logging struct {
	mu    sync.Mutex
	level *slog.LevelVar // nil: fixed
	name  string         // empty: as configured
	until time.Time
	timer *time.Timer
}

// SetLogLevelVar tells what the process's logger goes by.
func (d *Daemon) SetLogLevelVar(level *slog.LevelVar) { d.logging.level = level }

// LogLevel implements admin.Logger.
func (d *Daemon) LogLevel(context.Context) (adminapi.LogLevel, error) {
	d.logging.mu.Lock()
	defer d.logging.mu.Unlock()
	return d.logLevel(), nil
}

func (d *Daemon) logLevel() adminapi.LogLevel {
	l := &d.logging
	out := adminapi.LogLevel{Level: l.name, Configured: d.cfg.Log.Level, Until: l.until}
	if l.name == "" {
		out.Level = out.Configured
	}
	return out
}

// SetLogLevel implements admin.Logger.
func (d *Daemon) SetLogLevel(_ context.Context, r adminapi.SetLogLevelRequest) (adminapi.LogLevel, error) {
	l := &d.logging
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := LogLevels[r.Level]; !known && r.Level != "" {
		return adminapi.LogLevel{}, adminapi.Errorf(adminapi.CodeInvalid, "debug, info, warning or error", "%q is no level", r.Level)
	}
	if l.level == nil {
		return adminapi.LogLevel{}, adminapi.Errorf(adminapi.CodeUnavailable, "", "the level of this process is fixed")
	}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	d.setLog(r.Level, time.Time{})
	if r.For > 0 && r.Level != "" {
		l.until = time.Now().Add(r.For).UTC()
		var mine *time.Timer
		mine = time.AfterFunc(r.For, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.timer == mine { // else somebody has set another level meanwhile
				d.setLog("", time.Time{})
			}
		})
		l.timer = mine
	}
	return d.logLevel(), nil
}

// setLog puts a level in force; the caller holds the lock.
func (d *Daemon) setLog(name string, until time.Time) {
	l := &d.logging
	l.name, l.until = name, until
	if name == "" {
		name = d.cfg.Log.Level
	}
	l.level.Set(LogLevels[name])
	d.log.Info("log level set", "op", name)
}
