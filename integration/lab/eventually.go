package lab

import (
	"context"
	"fmt"
	"time"
)

// Eventually polls cond until it returns nil. When within has passed, or ctx ends, the error names what was waited for
// and the last state seen. Polling starts at 50 ms and slows down to a quarter of a second, or to four times what it
// takes to look, at most a second: looking must not slow down what is waited for.
func Eventually(ctx context.Context, within time.Duration, desc string, cond func(context.Context) error) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, within)
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
