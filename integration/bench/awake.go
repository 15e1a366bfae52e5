package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// awake runs f while a process of the idle class (sched(7): it runs when nobody else wants to) keeps each processor from resting.
//
// CPU time is no measure of work where the clock changes: a processor that has just rested is slow for a while, to half as much again for the same RSA
// operations, and whoever leaves it idle now and then, because there is less to do, pays that more than who never does. So costs of both sides are
// measured at the same clock. Nobody waits for these processes: any other preempts them at once.
func (b *bench) awake(ctx context.Context, f func(context.Context) error) error {
	if b.resting {
		return f(ctx)
	}
	all, stop, err := occupy(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for _, c := range all {
		if err := unix.SchedSetAttr(c.Process.Pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
			return fmt.Errorf("make a process idle: %w", err)
		}
	}
	return f(ctx)
}

// occupy starts a process for each processor that does nothing but use it, until ctx ends or stop is called, which waits for them.
func occupy(ctx context.Context) (all []*exec.Cmd, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	stop = func() {
		cancel()
		for _, c := range all {
			_ = c.Wait() // it was killed
		}
	}
	for range runtime.NumCPU() {
		c := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			stop()
			return nil, nil, fmt.Errorf("keep a processor busy: %w", err)
		}
		all = append(all, c)
	}
	return all, stop, nil
}

// steadily is a part that measures CPU per request.
func (b *bench) steadily(part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return b.awake(ctx, part) }
}
