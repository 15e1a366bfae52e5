package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// spin uses a processor until it is killed or the process with the given id has ended.
const spin = `while [ -d /proc/$0 ]; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done`

// steadily runs a part while a process of the idle class (sched(7)) keeps each processor awake. A processor that has
// just rested is slow for a while: the side that leaves it idle more often would pay more CPU time for the same work.
func steadily(part func(*bench, context.Context) error) func(*bench, context.Context) error {
	return func(b *bench, ctx context.Context) error {
		spinning, cancel := context.WithCancel(ctx)
		var g errgroup.Group
		var err error
		for range runtime.NumCPU() {
			c := exec.CommandContext(spinning, "chrt", "--idle", "0", "sh", "-c", spin, fmt.Sprint(os.Getpid()))
			if err = c.Start(); err != nil {
				break
			}
			g.Go(func() error {
				if err := c.Wait(); spinning.Err() == nil { // what was measured meanwhile is invalid
					return fmt.Errorf("process that keeps a processor awake has ended: %w", err)
				}
				return nil
			})
		}
		if err == nil {
			err = part(b, ctx)
		}
		cancel()
		return errors.Join(err, g.Wait())
	}
}
