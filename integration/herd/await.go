package herd

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/backoff"
)

// recheck is how long a herd must stay whole to count as whole: connections that break together are noticed one after
// the other.
const recheck = time.Second

// AwaitServed waits until every minion has 4505 and signs in no more. Some must have lost it since before.
func (h *Herd) AwaitServed(ctx context.Context, before Stats) (Stats, error) {
	whole := time.Time{}
	for {
		s := h.Stats()
		switch {
		case s.Subscribed < s.Minions || s.SigningIn > 0 || s.Disconnects == before.Disconnects:
			whole = time.Time{}
		case whole.IsZero():
			whole = time.Now()
		case time.Since(whole) > recheck:
			return s, nil
		}
		if !backoff.Sleep(ctx, recheck/20) {
			return s, fmt.Errorf("%d of %d minions are subscribed, %d are signing in, %d have lost their connection: %w",
				s.Subscribed, s.Minions, s.SigningIn, s.Disconnects-before.Disconnects, context.Cause(ctx))
		}
	}
}
