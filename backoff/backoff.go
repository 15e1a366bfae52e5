package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits for d and reports whether ctx is still active.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Backoff is the pause between attempts: Min after the first failure, then twice as long each time, Max at most. The
// zero value of the other fields is ready to use. It is not safe for concurrent use.
type Backoff struct {
	Min, Max time.Duration
	Jitter   bool // a pause is anything from half to the whole, so that many who failed together do not come back together

	next time.Duration
}

// Next returns the pause after a failure.
func (b *Backoff) Next() time.Duration {
	d := max(b.next, b.Min)
	b.next = min(2*d, b.Max)
	if b.Jitter {
		d = d/2 + rand.N(d/2+1)
	}
	return d
}

// Reset begins with Min again, after a success.
func (b *Backoff) Reset() { b.next = 0 }

// Wait waits for the next pause and reports whether ctx is still active.
func (b *Backoff) Wait(ctx context.Context) bool { return Sleep(ctx, b.Next()) }
