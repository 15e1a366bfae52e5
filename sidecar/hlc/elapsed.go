package hlc

import (
	"time"

	"golang.org/x/sys/unix"
)

// started is when this process began, for Elapsed where the kernel does not tell.
var started = time.Now()

// Elapsed is what a clock shows that cannot be set and, unlike that of time.Since, counts time in which the host is
// suspended. Only differences mean something.
func Elapsed() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return time.Since(started)
	}
	return time.Duration(ts.Nano())
}
