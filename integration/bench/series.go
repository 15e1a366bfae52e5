package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// series is one figure over the rounds.
type series []float64

func (s *series) add(v float64) { *s = append(*s, v) }

func (s series) sorted() series { return slices.Sorted(slices.Values(s)) }

// median of the rounds; 0 without rounds.
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
	return fmt.Sprintf(format+"/"+format+"/"+format, v[0], v[len(v)/2], v[len(v)-1])
}

// bold is show for the figure that is judged.
func (s series) bold(format string) string { return "**" + s.show(format) + "**" }

// over divides round by round, minus subtracts.
func (s series) over(by series) series {
	return s.with(by, func(a, b float64) float64 { return a / b })
}

func (s series) minus(by series) series {
	return s.with(by, func(a, b float64) float64 { return a - b })
}

// times is each figure in another unit.
func (s series) times(by float64) series {
	return s.with(s, func(a, _ float64) float64 { return a * by })
}

func (s series) with(o series, f func(a, b float64) float64) (r series) {
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

// atMost judges a median by an upper bound.
func atMost(s series, limit float64) string {
	if s.median() <= limit {
		return "met"
	}
	return "**missed**"
}

// atLeast judges a median by a lower bound.
func atLeast(s series, limit float64) string {
	if s.median() >= limit {
		return "met"
	}
	return "**missed**"
}

// judged are the last cells of a row: the bound, formatted, and whether it is met.
func judged(s series, format string, limit float64) []string {
	return []string{"≤ " + fmt.Sprintf(format, limit), atMost(s, limit)}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// cost is what one side needs for one request, in ms of CPU.
type cost struct{ all, daemon, master series }

// ratios of ours to bare, within each round.
func (c cost) over(bare cost) series { return c.all.over(bare.all) }

// turns has two sides act in turn, round by round, and returns what each of count requests costs them. The first round
// warms up.
func (b *bench) turns(bare, ours *target, count int, act func(*target) (used, error)) (alone, behind cost, err error) {
	for round := range b.rounds + 1 {
		for _, side := range []struct {
			*target
			*cost
		}{{bare, &alone}, {ours, &behind}} {
			u, err := act(side.target)
			if err != nil {
				return alone, behind, fmt.Errorf("%s: %w", side.name, err)
			}
			if round == 0 {
				continue
			}
			n := float64(count)
			side.cost.all.add(millis(u.daemon+u.master) / n)
			side.cost.daemon.add(millis(u.daemon) / n)
			side.cost.master.add(millis(u.master) / n)
		}
	}
	return alone, behind, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
