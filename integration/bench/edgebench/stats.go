package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// series collects measurements of several things, round by round.
type series struct{ values [][]float64 }

func (s *series) add(v ...float64) {
	if s.values == nil {
		s.values = make([][]float64, len(v))
	}
	for i, x := range v {
		s.values[i] = append(s.values[i], x)
	}
}

// show prints minimum, median and maximum of one thing.
func (s *series) show(i int, format string) string {
	v := slices.Sorted(slices.Values(s.values[i]))
	f := func(x float64) string { return fmt.Sprintf(format, x) }
	return f(v[0]) + "/" + f(v[len(v)/2]) + "/" + f(v[len(v)-1])
}

// ratio is the same of the rounds' own ratios a:b.
func ratio(a, b *series, i int) string {
	var r series
	for k := range a.values[i] {
		r.add(a.values[i][k] / b.values[i][k])
	}
	return r.show(0, "%.2f")
}

// established counts the connections to a local port that stand.
func established(port string) (n int, err error) {
	p, err := strconv.Atoi(port)
	if err != nil {
		return 0, err
	}
	b, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return 0, err
	}
	local := fmt.Sprintf("0100007F:%04X", p)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 3 && f[1] == local && f[3] == "01" {
			n++
		}
	}
	return n, nil
}
