package main

import (
	"fmt"
	"slices"
	"time"
)

// series is one figure over the rounds.
type series []float64

func (s *series) add(v float64) { *s = append(*s, v) }

func (s series) sorted() series { return slices.Sorted(slices.Values(s)) }

// median of the rounds; 0 when there were none.
func (s series) median() float64 {
	if len(s) == 0 {
		return 0
	}
	return s.sorted()[len(s)/2]
}

// show prints minimum/median/maximum.
func (s series) show(format string) string {
	if len(s) == 0 {
		return "–"
	}
	v := s.sorted()
	f := func(x float64) string { return fmt.Sprintf(format, x) }
	return f(v[0]) + "/" + f(v[len(v)/2]) + "/" + f(v[len(v)-1])
}

// over divides round by round, minus subtracts.
func (s series) over(by series) series {
	return s.with(by, func(a, b float64) float64 { return a / b })
}

func (s series) minus(by series) series {
	return s.with(by, func(a, b float64) float64 { return a - b })
}

// times is each figure in another unit.
func (s series) times(by float64) (out series) {
	for _, v := range s {
		out.add(v * by)
	}
	return out
}

func (s series) with(o series, f func(a, b float64) float64) series {
	var r series
	for i := range min(len(s), len(o)) {
		r.add(f(s[i], o[i]))
	}
	return r
}

// quantile of durations, which it sorts.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))]
}

// atMost is the verdict on a median with an upper bound.
func atMost(s series, limit float64) string {
	if s.median() <= limit {
		return "met"
	}
	return "**missed**"
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
