package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// awake runs f while a process of the idle class (sched(7): it runs when nobody else wants to) keeps each processor from resting.
//
// CPU time is no measure of work where the clock changes: a processor that has just rested is slow for a while, to half as much again for the same RSA
// operations, and whoever leaves it idle now and then, because there is less to do, pays that more than who never does. So costs of both sides are
// measured at the same clock. Nobody waits for these processes: any other preempts them at once.
func (b *bench) awake(ctx context.Context, f func(context.Context) error) (err error) {
	if b.resting {
		return f(ctx)
	}
	busy, err := occupy(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, busy.stop()) }()
	for _, c := range busy.all {
		if err := unix.SchedSetAttr(c.Process.Pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
			return fmt.Errorf("make a process idle: %w", err)
		}
	}
	return f(ctx)
}

// steadily is a part that measures CPU per request.
func (b *bench) steadily(part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return b.awake(ctx, part) }
}

// occupied are processes, one for each processor, that do nothing but use it.
type occupied struct {
	all    []*exec.Cmd
	cancel context.CancelFunc
	ended  chan error // that of one which has ended by itself
}

// occupy starts them. They end with ctx, with this program, or by stop.
func occupy(ctx context.Context) (*occupied, error) {
	ctx, cancel := context.WithCancel(ctx)
	o := &occupied{cancel: cancel, ended: make(chan error, 1)}
	started := make(chan error)
	go func() { // ends when they have
		// The kernel kills them with the thread that has started them (Pdeathsig), and a lab throws away threads that were in a namespace: this one
		// stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- o.start(ctx)
		o.ended <- o.wait(ctx)
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(err, o.stop())
	}
	return o, nil
}

func (o *occupied) start(ctx context.Context) error {
	for range runtime.NumCPU() {
		c := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			return fmt.Errorf("keep a processor busy: %w", err)
		}
		o.all = append(o.all, c)
	}
	return nil
}

func (o *occupied) wait(ctx context.Context) error {
	var g errgroup.Group
	for _, c := range o.all {
		g.Go(func() error {
			if err := c.Wait(); ctx.Err() == nil {
				return fmt.Errorf("a process that was to keep a processor busy has ended: %w", err)
			}
			return nil
		})
	}
	return g.Wait()
}

// stop ends them, and says whether one had ended before: what was measured meanwhile was measured with a processor that rests.
func (o *occupied) stop() error {
	o.cancel()
	return <-o.ended
}
