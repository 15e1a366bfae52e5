package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseSize reads a number of bytes: "65536", "64KiB", "64K", "1.5 MiB".
// Units are powers of 1024 with or without "iB" or "B".
func ParseSize(s string) (Size, error) {
	text := strings.TrimSpace(s)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	unit := Size(1)
	switch strings.ToLower(strings.TrimSpace(text[end:])) {
	case "", "b":
	case "k", "kb", "kib":
		unit = KiB
	case "m", "mb", "mib":
		unit = MiB
	case "g", "gb", "gib":
		unit = GiB
	default:
		return 0, fmt.Errorf("%q is not a size", s)
	}
	n, err := strconv.ParseFloat(text[:end], 64)
	if err != nil || n < 0 || n*float64(unit) > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	return Size(n * float64(unit)), nil
}

// String renders the size with the greatest unit that divides it.
func (s Size) String() string {
	switch {
	case s >= GiB && s%GiB == 0:
		return fmt.Sprintf("%dGiB", s/GiB)
	case s >= MiB && s%MiB == 0:
		return fmt.Sprintf("%dMiB", s/MiB)
	case s >= KiB && s%KiB == 0:
		return fmt.Sprintf("%dKiB", s/KiB)
	default:
		return strconv.FormatInt(int64(s), 10)
	}
}

// parseDuration reads Go's notation ("1m30s", "500ms") or a plain number of
// seconds, as Salt's own options are.
func parseDuration(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		if !(seconds >= 0 && seconds <= math.MaxInt32) { // also refuses NaN
			return 0, fmt.Errorf("%q is not a duration", s)
		}
		return time.Duration(seconds * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration", s)
	}
	return d, nil
}

// formatDuration renders d without the empty tail of Duration.String: "5m",
// not "5m0s".
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
