package jobs

import (
	"os"
	"strconv"
	"strings"
)

// usualUmask makes of the modes that files are created with those of a stock master's.
const usualUmask = 0o022

// ownUmask reads this process's umask without changing it; -1 when it cannot.
func ownUmask() int64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	_, rest, _ := strings.Cut(string(raw), "\nUmask:")
	line, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseInt(strings.TrimSpace(line), 8, 32)
	if err != nil {
		return -1
	}
	return mask
}
