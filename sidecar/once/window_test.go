package once

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// knows says whether a load is recognised.
func (w *Window) knows(k Key) (known bool) {
	if w.Claim(k, func(error) { known = true }) {
		w.Settle(k, errors.New("only asked"))
	}
	return known
}

// take has a load taken that is not known.
func (w *Window) take(t *testing.T, k Key) {
	t.Helper()
	if w.knows(k) || !w.Claim(k, nil) {
		t.Errorf("%v is known", k)
	}
	w.Settle(k, nil)
}

func TestWindowForgets(t *testing.T) {
	w := NewWindow(2)
	for k := range uint64(3) {
		w.take(t, Key{k, 0})
	}
	if w.knows(Key{0, 0}) || !w.knows(Key{1, 0}) || !w.knows(Key{2, 0}) {
		t.Errorf("keeps %v", w.keys)
	}
	if w.Key("a", []byte("b")) == w.Key("ab", nil) {
		t.Error("two loads look like one")
	}
}

// TestMinionForgetsItsOwn: a minion that sends more than all others has only its own loads forgotten.
func TestMinionForgetsItsOwn(t *testing.T) {
	const size = 4 * share
	w := NewWindow(size)
	for k := range uint64(size / 2) {
		w.take(t, Key{k, k})
	}
	const flood = 1000
	for k := range uint64(3 * size) {
		w.take(t, Key{flood, k})
	}
	for k := range uint64(size / 2) {
		if !w.knows(Key{k, k}) {
			t.Errorf("the load of minion %d is forgotten", k)
		}
	}
	for k := range uint64(3 * size) {
		if want := k >= 3*size-size/share; w.knows(Key{flood, k}) != want {
			t.Errorf("load %d of the flood is known: %v", k, !want)
		}
	}
}

// TestWindowAgainstModel: whatever minions send, a minion keeps its newest loads, none more than its part, and nothing
// is forgotten while there is room.
func TestWindowAgainstModel(t *testing.T) {
	const size = 3 * share
	w, r := NewWindow(size), rand.New(rand.NewPCG(1, 2))
	order := map[uint64][]Key{} // by minion
	for n := range uint64(20_000) {
		m := uint64(r.IntN(1 + r.IntN(40)))
		k := Key{m, n}
		w.take(t, k)
		order[m] = append(order[m], k)
		total := 0
		for m, keys := range order {
			known := 0
			for _, k := range keys {
				if _, is := w.keys[k]; is {
					known++
				}
			}
			for _, k := range keys[len(keys)-known:] {
				if _, is := w.keys[k]; !is {
					t.Fatalf("after load %d: minion %d has an older load than %v, which is forgotten", n, m, k)
				}
			}
			if known > size/share || w.minions[m].count != known {
				t.Fatalf("after load %d: minion %d has %d loads, counted as %d", n, m, known, w.minions[m].count)
			}
			order[m] = keys[len(keys)-known:]
			total += known
		}
		if total != len(w.keys) || total != len(w.ring) {
			t.Fatalf("after load %d: %d loads of minions, %d known, %d in the ring", n, total, len(w.keys), len(w.ring))
		}
	}
	if len(w.ring) != size {
		t.Errorf("%d of %d places used", len(w.ring), size)
	}
}

// TestSameAtTheSameTime: the second of two equal loads ends as the first does.
func TestSameAtTheSameTime(t *testing.T) {
	w := NewWindow(2)
	bad := errors.New("disk")
	var ends []error
	note := func(err error) { ends = append(ends, err) }
	k := Key{1, 1}
	for _, err := range []error{bad, nil} {
		if !w.Claim(k, note) || w.Claim(k, note) || w.Claim(k, note) {
			t.Fatal("taken twice, or not at all")
		}
		w.Settle(k, err)
	}
	if w.Claim(k, note) || !slices.Equal(ends, []error{bad, bad, nil, nil, nil}) || len(w.pending) != 0 {
		t.Errorf("ends %v, %d pending", ends, len(w.pending))
	}
}
