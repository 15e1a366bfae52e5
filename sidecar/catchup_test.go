package sidecar

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/integration/check"
)

// Those whom the cluster knows wait for a question as long as the last one was dear, strangers for their turn.
func TestCatchUp_AskInterval(t *testing.T) {
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		took  time.Duration // each question
		known []bool        // who comes, each as soon as the one before was decided
		want  []time.Duration
	}{
		"a stranger at once, others in their turn": {0, []bool{false, false, false}, []time.Duration{0, 20 * ms, 40 * ms}},
		"who is known soon":                        {0, []bool{true, true, true}, []time.Duration{0, 2 * ms, 4 * ms}},
		"far from the leader":                      {ms, []bool{true, true, true}, []time.Duration{0, 10 * ms, 20 * ms}},
		"no later than a stranger": {30 * ms, []bool{true, true, false},
			[]time.Duration{0, 50 * ms, 100 * ms}},
		"a stranger before and after": {0, []bool{false, true, false, true},
			[]time.Duration{0, 2 * ms, 22 * ms, 24 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var asked []time.Duration
				c := newCatchUp(func(context.Context) error {
					asked = append(asked, time.Since(began))
					time.Sleep(tc.took)
					return nil
				})
				var wg sync.WaitGroup
				for _, known := range tc.known {
					decided := make(chan struct{})
					if !c.addWaiter(t.Context(), &wg, known, func(bool) { close(decided) }) {
						t.Fatal("no room")
					}
					<-decided
				}
				wg.Wait()
				check.EqualSlices(t, asked, tc.want, "asked after")
			})
		})
	}
}

// One that is known takes with it the strangers that wait.
func TestCatchUp_StrangerWithKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := newCatchUp(func(context.Context) error { return nil })
		var wg sync.WaitGroup
		var stranger time.Duration
		first := make(chan struct{})
		c.addWaiter(t.Context(), &wg, false, func(bool) { close(first) })
		<-first
		c.addWaiter(t.Context(), &wg, false, func(bool) { stranger = time.Since(began) })
		time.Sleep(5 * time.Millisecond)
		c.addWaiter(t.Context(), &wg, true, func(bool) {})
		wg.Wait()
		check.Equal(t, stranger, 5*time.Millisecond, "decided after")
	})
}

// Whoever waits is decided when the node ends, and nobody is taken any more.
func TestCatchingUpEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newCatchUp(func(ctx context.Context) error { return ctx.Err() })
		var wg sync.WaitGroup
		decided := 0
		c.addWaiter(ctx, &wg, false, func(bool) { decided++ })
		synctest.Wait()
		c.addWaiter(ctx, &wg, false, func(bool) { decided++ })
		cancel()
		wg.Wait()
		if decided != 2 || c.addWaiter(ctx, &wg, true, func(bool) { t.Error("decided") }) {
			t.Errorf("%d decided", decided)
		}
	})
}

// While a question takes long, strangers fill the places that they may have, and who is known still gets one.
func TestCatchUp_StrangersLeavePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCatchUp(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }) // no leader
		var wg sync.WaitGroup
		decided := 0
		for i := range maxCatchingUp { // the first of them waits for the question that is under way
			c.addWaiter(t.Context(), &wg, false, func(bool) { decided++ })
			if i == 0 {
				synctest.Wait()
			}
		}
		for i := range maxCatchingUp - maxStrangersCatchingUp {
			if !c.addWaiter(t.Context(), &wg, true, func(bool) { decided++ }) {
				t.Fatalf("no room for the %dth that is known", i+1)
			}
		}
		if c.addWaiter(t.Context(), &wg, true, func(bool) {}) {
			t.Error("more wait than may")
		}
		wg.Wait()
		if want := maxCatchingUp + 1; decided != want {
			t.Errorf("%d were decided, want %d", decided, want)
		}
		for range maxStrangersCatchingUp { // the places are free again
			if !c.addWaiter(t.Context(), &wg, false, func(bool) {}) {
				t.Fatal("no room for strangers afterwards")
			}
		}
		wg.Wait()
	})
}
