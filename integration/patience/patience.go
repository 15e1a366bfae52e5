package patience

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"saltclusterd/integration/require"
)

// testWait is for how long a test waits for what comes soon.
const testWait = time.Minute

// WaitFor waits in a test until ok, and ends the test when that does not come.
func WaitFor(t require.T, what string, ok func() bool) {
	t.Helper()
	wait(t, what, func() error {
		if !ok() {
			return errNotYet
		}
		return nil
	})
}

var errNotYet = errors.New("not yet")

// WaitNil waits in a test until cond returns nil, and ends the test with its last error when that does not come.
func WaitNil(t require.T, cond func() error) {
	t.Helper()
	wait(t, "a condition", cond)
}

// WaitSettled waits in a test until problem returns none, and ends the test with the last one when that does not come.
func WaitSettled(t require.T, problem func() string) {
	t.Helper()
	WaitNil(t, func() error {
		if p := problem(); p != "" {
			return errors.New(p)
		}
		return nil
	})
}

// wait makes do without a goroutine of its own: some tests count them.
func wait(t require.T, what string, cond func() error) {
	t.Helper()
	w := begin(testWait)
	for pause := time.Millisecond; ; pause = min(pause*3/2, 5*time.Millisecond) {
		asked := time.Now()
		err := cond()
		if err == nil {
			return
		}
		if w.left() <= 0 {
			t.Fatal(w.inVain(what, err))
		}
		time.Sleep(max(pause, time.Since(asked)))
	}
}

// Poll calls cond until it returns nil. When within has passed, or ctx ends, the error names what was waited for and
// the last state seen. Between two looks it pauses, for 50 ms at first, then up to a quarter of a second, or up to four
// times what it takes to look, at most a second: looking must not slow down what is waited for.
//
// On a machine that is overloaded all the time the wait is three times as long as within.
func Poll(ctx context.Context, within time.Duration, what string, cond func(context.Context) error) error {
	w := begin(within)
	ctx, cancel := w.limit(ctx)
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
			return w.inVain(what, last)
		case <-time.After(pause):
		}
		pause = min(pause*3/2, max(250*time.Millisecond, 4*took), time.Second)
	}
}

// waiting is a wait that has begun.
type waiting struct {
	within time.Duration
	start  time.Time
	before time.Duration // stalled at the start
}

func begin(within time.Duration) waiting {
	return waiting{within: within, start: time.Now(), before: stalled()}
}

// left is the time until the wait ends at the earliest.
func (w waiting) left() time.Duration {
	return w.within - time.Since(w.start) + (stalled()-w.before)*2/3
}

func (w waiting) inVain(what string, last error) error {
	return fmt.Errorf("waited %s for %s: %w", time.Since(w.start).Round(100*time.Millisecond), what, last)
}

// limit returns a context that ends with the wait.
func (w waiting) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		for left := w.left(); left > 0; left = w.left() {
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
