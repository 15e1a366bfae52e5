package backoff

import (
	"context"
	"testing"
	"time"

	"saltclusterd/integration/check"
)

func TestNext_DoublesUpToMax(t *testing.T) {
	b := Backoff{Min: time.Second, Max: 5 * time.Second}
	for i, want := range []time.Duration{1, 2, 4, 5, 5} {
		check.Equal(t, b.Next(), want*time.Second, "pause", i)
	}
	b.Reset()
	check.Equal(t, b.Next(), time.Second, "pause after a reset")
}

func TestNext_Jitter(t *testing.T) {
	b := Backoff{Min: time.Second, Max: time.Second, Jitter: true}
	for range 1000 {
		if got := b.Next(); got < time.Second/2 || got > time.Second {
			t.Fatalf("pause is %v, want half a second to a second", got)
		}
	}
}

func TestNext_MinAboveMax(t *testing.T) {
	b := Backoff{Min: 2 * time.Second, Max: time.Second}
	if first, second := b.Next(), b.Next(); first != 2*time.Second || second != 2*time.Second {
		t.Errorf("pauses are %v and %v, want Min", first, second)
	}
}

func TestSleep(t *testing.T) {
	if !Sleep(t.Context(), time.Millisecond) {
		t.Error("context has not ended")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if Sleep(ctx, time.Hour) {
		t.Error("context has ended")
	}
}
