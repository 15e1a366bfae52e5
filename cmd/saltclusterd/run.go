package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"saltclusterd/cmd/buildversion"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/daemon"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/cmd/saltclusterd/wording"
)

// Exit codes.
const (
	exitFailure = 1  // a part failed
	exitUsage   = 78 // command line or configuration (sysexits.h: EX_CONFIG); not 2, with which Go ends after a panic
)

// stopGrace is what a stop may take beyond letting minions go: requests under way, closing the log on a slow disk.
const stopGrace = 60 * time.Second

// usageError is a mistake in the command line or the configuration.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func exitCode(err error) int {
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailure
}

// run is main without the process around it. It stops in good order when ctx ends, and at once when graceful
// also ends.
func run(ctx, graceful context.Context, args []string, stdout, stderr io.Writer) error {
	flags, o := newFlags(stderr)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return &usageError{err}
	case flags.NArg() > 0:
		return &usageError{fmt.Errorf("unexpected argument %q", flags.Arg(0))}
	}
	switch {
	case o.version:
		fmt.Fprintln(stdout, "saltclusterd", buildversion.Get())
		return nil
	case o.manual:
		_, err := stdout.Write(manualPage(flags, buildversion.Get()))
		return err
	}
	cfg, err := config.Load(o.config)
	if err != nil {
		return &usageError{err}
	}
	if o.check {
		if replaces := os.Getenv(takeover.ReplacesEnv); replaces != "" {
			if err := daemon.Rehearse(ctx, cfg, replaces); err != nil {
				return err
			}
		}
		fmt.Fprintln(stdout, "configuration is valid")
		return nil
	}
	level := new(slog.LevelVar)
	log := newLogger(cfg.Log, level, stderr)
	slog.SetDefault(log)
	d, err := daemon.New(cfg, buildversion.Get(), log)
	if err != nil {
		return &usageError{err}
	}
	defer context.AfterFunc(graceful, d.EndGrace)()
	if cfg.Edge.MemoryLimit > 0 {
		debug.SetMemoryLimit(int64(cfg.Edge.MemoryLimit))
	}
	p, err := describeProcess(args, o.config)
	if err != nil {
		return &usageError{err}
	}
	d.SetProcess(p)
	d.SetLogLevelVar(level)
	alive, err := watchdogEvery(os.Getenv, os.Setenv, p.Takeover != 0)
	if err != nil {
		return &usageError{err}
	}
	log.Info("saltclusterd starts", "node", cfg.ID, "version", buildversion.Get(), "pid", os.Getpid())
	go reloadOnSignal(ctx, d, log) // ends with ctx, or with the process
	grace := cfg.Edge.DrainAnnounce + cfg.Edge.DrainTime + stopGrace
	defer context.AfterFunc(ctx, func() { notifyStopping(grace, notifySystemd) })()
	living, end := context.WithCancel(context.WithoutCancel(ctx)) // also while it stops
	defer end()
	err = d.Run(ctx, func() {
		notifySystemd("READY=1")
		if alive > 0 {
			go runWatchdog(living, alive, d.TakeLocks, func(state string) { // ends with living
				if !d.HandedOver() {
					notifySystemd(state)
				}
			})
		}
	})
	if d.HandedOver() {
		return err
	}
	if r, ok := errors.AsType[*takeover.RestartError](err); ok && ctx.Err() == nil {
		log.Warn("restarting with another program", "path", r.Binary, "reason", r.Reason)
		return fmt.Errorf("start %s: %w", r.Binary, syscall.Exec(r.Binary, append([]string{r.Binary}, args...), os.Environ()))
	}
	log.Info("saltclusterd stopped", "node", cfg.ID)
	return err
}

func newLogger(cfg config.Log, level *slog.LevelVar, w io.Writer) *slog.Logger {
	level.Set(operator.LogLevels[cfg.Level])
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: adaptAttr(wording.HostServices())}
	var h slog.Handler = slog.NewTextHandler(w, opts)
	if cfg.Format == "json" {
		h = slog.NewJSONHandler(w, opts)
	}
	return slog.New(limitLog(h, time.Now))
}

// adaptAttr has what is logged name the commands of this host.
func adaptAttr(services wording.Services) func([]string, slog.Attr) slog.Attr {
	if services == wording.Services("") {
		return nil
	}
	return func(_ []string, a slog.Attr) slog.Attr {
		switch a.Value.Kind() {
		case slog.KindString:
			a.Value = slog.StringValue(services.Adapt(a.Value.String()))
		case slog.KindAny:
			if err, ok := a.Value.Any().(error); ok {
				a.Value = slog.StringValue(services.Adapt(err.Error()))
			}
		}
		return a
	}
}

// notifySystemd tells systemd a state, when it listens (sd_notify(3)).
func notifySystemd(state string) {
	if err := sendNotify(os.Getenv("NOTIFY_SOCKET"), state); err != nil {
		slog.Warn("systemd not notified", "err", err)
	}
}
