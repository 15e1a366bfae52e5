package main

import (
	"strconv"
	"strings"
)

// devBytes reads /proc/net/dev: what all interfaces but lo have sent and got.
func devBytes(text string) (sent, got float64) {
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if !ok || strings.TrimSpace(name) == "lo" || len(f) < 9 {
			continue
		}
		rx, _ := strconv.ParseFloat(f[0], 64)
		tx, _ := strconv.ParseFloat(f[8], 64)
		got, sent = got+rx, sent+tx
	}
	return sent, got
}
