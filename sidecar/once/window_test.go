package once

import (
	"errors"
	"slices"
	"testing"
)

func TestWindowForgets(t *testing.T) {
	w := NewWindow(2)
	taken := func(k uint64) bool {
		known := false
		if w.Claim(k, func(error) { known = true }) {
			w.Settle(k, errors.New("only asked"))
		}
		return known
	}
	for k := range uint64(3) {
		if taken(k) || !w.Claim(k, nil) {
			t.Errorf("%d is known", k)
		}
		w.Settle(k, nil)
	}
	if taken(0) || !taken(1) || !taken(2) {
		t.Errorf("keeps %v", w.keys)
	}
	if w.Key("a", []byte("b")) == w.Key("ab", nil) {
		t.Error("two loads look like one")
	}
}

// TestSameAtTheSameTime: the second of two equal loads ends as the first does.
func TestSameAtTheSameTime(t *testing.T) {
	w := NewWindow(2)
	bad := errors.New("disk")
	var ends []error
	note := func(err error) { ends = append(ends, err) }
	for _, err := range []error{bad, nil} {
		if !w.Claim(1, note) || w.Claim(1, note) || w.Claim(1, note) {
			t.Fatal("taken twice, or not at all")
		}
		w.Settle(1, err)
	}
	if w.Claim(1, note) || !slices.Equal(ends, []error{bad, bad, nil, nil, nil}) || len(w.pending) != 0 {
		t.Errorf("ends %v, %d pending", ends, len(w.pending))
	}
}
