package patience_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/patience"
)

func TestPoll(t *testing.T) {
	seen := 0
	err := patience.Poll(t.Context(), time.Minute, "three looks", func(context.Context) error {
		if seen++; seen < 3 {
			return errors.New("early")
		}
		return nil
	})
	if err != nil || seen != 3 {
		t.Errorf("%d looks, %v", seen, err)
	}
	last := errors.New("what was seen")
	err = patience.Poll(t.Context(), 20*time.Millisecond, "nothing", func(context.Context) error { return last })
	if !errors.Is(err, last) || !strings.Contains(err.Error(), "for nothing") {
		t.Errorf("the end of a wait in vain: %v", err)
	}
}

// TestPoll_Deadline wants a look that waits for its context to be ended, and the look before it to be told of.
func TestPoll_Deadline(t *testing.T) {
	first := errors.New("first")
	looks := 0
	err := patience.Poll(t.Context(), 50*time.Millisecond, "a look that ends", func(ctx context.Context) error {
		if looks++; looks == 1 {
			return first
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, first) {
		t.Errorf("%v after %d looks", err, looks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := patience.Poll(ctx, time.Hour, "a test that ended", func(context.Context) error { return first }); err == nil {
		t.Error("a wait goes on after its context")
	}
}
