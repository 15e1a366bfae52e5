package herd

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the time that this process has used, user and system.
func CPU() (time.Duration, error) {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0, fmt.Errorf("own CPU time: %w", err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), nil
}
