package daemon

import "testing"

func TestOneMinionLeavesWorkers(t *testing.T) {
	for workers, want := range map[int]int{0: 1, 1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3, 24: 12} {
		if got := shareOf(workers); got != want {
			t.Errorf("of %d workers one minion has %d, not %d", workers, got, want)
		}
	}
}
