package lab

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Eventually polls cond until it returns nil. When within has passed, or ctx ends, the error names what was waited for
// and the last state seen. Polling starts at 50 ms and slows down to a quarter of a second, or to four times what it
// takes to look, at most a second: looking must not slow down what is waited for.
//
// Of the time in which processes of this machine waited for a processor, two thirds do not count: on a machine that is
// overloaded all the time the wait is three times as long.
func Eventually(ctx context.Context, within time.Duration, desc string, cond func(context.Context) error) error {
	start := time.Now()
	ctx, cancel := patience(ctx, within)
	defer cancel()
	pause := 50 * time.Millisecond
	var last error
	for {
		asked := time.Now()
		err := cond(ctx)
		took := time.Since(asked)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil { // an attempt cut short by the deadline says less than the one before it
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %w", time.Since(start).Round(100*time.Millisecond), desc, last)
		case <-time.After(pause):
		}
		pause = min(pause*3/2, min(max(250*time.Millisecond, 4*took), time.Second))
	}
}

// patience returns a context that ends when within has passed, counted as Eventually counts.
func patience(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	start, before := time.Now(), stalled()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		for left := within; left > 0; left = within - time.Since(start) + (stalled()-before)*2/3 {
			select {
			case <-time.After(left):
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(); <-done }
}

// stalled is for how long, since this machine started, there was a process that waited for a processor. 0 where Linux
// does not count it (Documentation/accounting/psi.rst).
func stalled() time.Duration {
	raw, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	var shares [3]float64
	var total int64 // µs
	if _, err := fmt.Sscanf(string(raw), "some avg10=%f avg60=%f avg300=%f total=%d",
		&shares[0], &shares[1], &shares[2], &total); err != nil {
		return 0
	}
	return time.Duration(total) * time.Microsecond
}
