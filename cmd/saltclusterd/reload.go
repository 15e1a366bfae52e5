package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"saltclusterd/cmd/saltclusterd/daemon"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/sidecar/adminapi"
)

// hangups gets SIGHUP from the first moment on: its default is to end the process, and the service manager may send it
// to a process that has just taken over.
var hangups = func() chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c
}()

// reloadOnSignal puts the program that is at our path now in our place, whenever SIGHUP asks for it.
func reloadOnSignal(ctx context.Context, d *daemon.Daemon, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		_, err := d.Upgrade(ctx, adminapi.UpgradeRequest{}, func(step, message string, _ ...int) {
			log.Info("upgrade", "step", step, "reason", message)
		})
		if err != nil {
			log.Error("SIGHUP did not start a new process", "err", err)
		}
	}
}

// describeProcess describes this process to the daemon, so that it can put another one in its place.
func describeProcess(args []string, config string) (takeover.Process, error) {
	from, err := takeover.ReadDescriptor(os.Getenv)
	if err != nil {
		return takeover.Process{}, err
	}
	binary, err := exec.LookPath(os.Args[0])
	if err == nil {
		binary, err = filepath.Abs(binary)
	}
	if err != nil {
		return takeover.Process{}, fmt.Errorf("find our own program: %w", err)
	}
	return takeover.Process{
		Binary: binary, Args: args, Check: []string{"--config", config, "--check"}, Takeover: from, Notify: notifySystemd,
		Barrier: func(ctx context.Context) {
			if err := awaitBarrier(ctx, os.Getenv("NOTIFY_SOCKET")); err != nil {
				log := slog.Default()
				log.Warn("did not wait for systemd", "err", err)
			}
		},
		End: func() { os.Exit(exitFailure) },
	}, nil
}
