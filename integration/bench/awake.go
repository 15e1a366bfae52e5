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
	busy, stop := context.WithCancel(ctx)
	var all []*exec.Cmd
	defer func() {
		stop()
		for _, c := range all {
			_ = c.Wait()
		}
	}()
	for range runtime.NumCPU() {
		c, err := spinner(busy)
		if c != nil {
			all = append(all, c)
		}
		if err == nil {
			err = unix.SchedSetAttr(c.Process.Pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
		}
		if err != nil {
			return fmt.Errorf("keep a processor awake: %w", err)
		}
	}
	return f(ctx)
}

// spinner starts a process that uses one processor until ctx ends.
func spinner(ctx context.Context) (*exec.Cmd, error) {
	c := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return c, nil
}

// steadily is a part that measures CPU per request.
func (b *bench) steadily(part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return b.awake(ctx, part) }
}
