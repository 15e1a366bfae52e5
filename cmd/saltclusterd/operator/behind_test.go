package operator

import (
	"testing"
	"time"
)

func TestBehindGate(t *testing.T) {
	type step struct {
		at     int // seconds
		behind time.Duration
		out    bool
	}
	long := behindOut + time.Second
	for name, steps := range map[string][]step{
		"never behind":         {{0, 0, false}, {100, 0, false}},
		"for a moment":         {{0, time.Second, false}, {9, behindOut - 1, false}, {10, 0, false}},
		"for too long":         {{0, behindOut, true}, {1, long, true}},
		"back when it is well": {{0, long, true}, {1, 0, true}, {5, 0, true}, {6, 0, false}, {7, 0, false}},
		"well only now and then": {
			{0, long, true}, {1, 0, true}, {4, time.Second, true}, {5, 0, true}, {9, 0, true}, {10, 0, false},
		},
		"behind anew after it was": {{0, long, true}, {1, 0, true}, {6, 0, false}, {7, time.Second, false}, {17, long, true}},
	} {
		var g BehindGate
		for _, s := range steps {
			if out := g.isOut(time.Unix(int64(1000+s.at), 0), s.behind); out != s.out {
				t.Errorf("%s: after %d s, behind for %s: out %v", name, s.at, s.behind, out)
			}
		}
	}
}
