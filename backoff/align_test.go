package backoff

import (
	"context"
	"testing"
	"time"
)

func TestAlign(t *testing.T) {
	for _, tc := range []struct{ age, every, want time.Duration }{
		{0, time.Second, time.Second},
		{300 * time.Millisecond, time.Second, 700 * time.Millisecond},
		{1300 * time.Millisecond, 500 * time.Millisecond, 200 * time.Millisecond},
		{2 * time.Second, time.Second, time.Second}, // one was just due
		{-300 * time.Millisecond, time.Second, 300 * time.Millisecond},
		{-2 * time.Second, time.Second, time.Second},
	} {
		if got := alignAt(tc.age, tc.every); got != tc.want {
			t.Errorf("at %v every %v: %v, want %v", tc.age, tc.every, got, tc.want)
		}
	}
	if d := Align(time.Hour); d <= 0 || d > time.Hour {
		t.Errorf("%v until the next hour", d)
	}
}

func TestPoll(t *testing.T) {
	if !Poll(t.Context(), time.Millisecond) {
		t.Error("context has not ended")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if Poll(ctx, time.Hour) {
		t.Error("context has ended")
	}
}
