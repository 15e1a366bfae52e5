package masterlink

import "testing"

func TestWaitersOf(t *testing.T) {
	for workers, want := range map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 3, 24: 12} {
		if got := waitersOf(workers); got != want {
			t.Errorf("of %d workers %d wait for one minion, not %d", workers, got, want)
		}
	}
}
