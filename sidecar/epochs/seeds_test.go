package epochs

import (
	"slices"
	"testing"
	"time"
)

func TestSeeds_Window(t *testing.T) {
	now := time.Unix(1000, 0)
	s := NewSeeds(func() time.Time { return now })
	seed := func(n uint64) Seed { return Seed{Number: n, Secret: []byte{byte(n)}} }
	good := func(want ...uint64) {
		t.Helper()
		got := []uint64{s.Current().Number}
		for _, f := range s.Former() {
			got = append(got, f.Number)
		}
		if !slices.Equal(got, want) {
			t.Errorf("good are %v, want %v", got, want)
		}
	}
	good(0)
	s.Begin(seed(3), seed(2), time.Minute) // started while minions move
	good(3, 2)
	now = now.Add(30 * time.Second)
	s.Begin(seed(3), seed(2), time.Minute) // no news
	s.Begin(seed(4), seed(3), time.Minute)
	good(4, 3, 2)
	now = now.Add(30 * time.Second)
	good(4, 3)
	s.Begin(seed(7), seed(6), time.Minute) // it was away
	good(7, 6, 4, 3)
	now = now.Add(time.Minute)
	good(7)
	for n := uint64(8); n < 20; n++ {
		s.Begin(seed(n), seed(n-1), time.Minute)
	}
	good(19, 18, 17, 16, 15)
}
