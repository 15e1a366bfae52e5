package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"
)

// watchdogEvery tells how often the service manager wants to hear that this process lives: at a third of WATCHDOG_USEC
// (sd_watchdog_enabled(3)); 0: it does not. A process that has taken over inherits what was meant for the one before
// it, and in any case passes it on as meant for itself.
func watchdogEvery(getenv func(string) string, setenv func(name, value string) error,
	takeover bool) (time.Duration, error) {
	text := getenv("WATCHDOG_USEC")
	if text == "" {
		return 0, nil
	}
	usec, err := strconv.ParseInt(text, 10, 64)
	if err != nil || usec <= 0 || usec > int64(24*time.Hour/time.Microsecond) {
		return 0, fmt.Errorf("WATCHDOG_USEC=%q is not a valid time", text)
	}
	own := strconv.Itoa(os.Getpid())
	if pid := getenv("WATCHDOG_PID"); pid != "" && pid != own && !takeover {
		return 0, nil
	}
	return time.Duration(usec) * time.Microsecond / 3, setenv("WATCHDOG_PID", own)
}

// runWatchdog tells the service manager every so often that this process lives, until ctx ends. A call of takeLocks
// that does not return is followed by silence, and that by the service manager's signal, whose answer is a dump of all
// goroutines.
func runWatchdog(ctx context.Context, every time.Duration, takeLocks func(), notify func(string)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for back := make(chan struct{}, 1); ; {
		go func() { // ends with takeLocks; the next one is not begun before
			takeLocks()
			back <- struct{}{}
		}()
		select {
		case <-ctx.Done():
			return
		case <-back:
			notify("WATCHDOG=1")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// notifyStopping tells the service manager that a stop was asked for and how long it may take.
func notifyStopping(within time.Duration, notify func(string)) {
	notify("STOPPING=1\nEXTEND_TIMEOUT_USEC=" + strconv.FormatInt(within.Microseconds(), 10))
}
