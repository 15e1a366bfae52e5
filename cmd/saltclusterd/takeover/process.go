package takeover

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Env names the environment variable with the descriptor on which a new process talks to the old one.
const Env = "SALTCLUSTERD_TAKEOVER"

// Process is what an Upgrader needs from the process it runs in, to put another one in its place.
type Process struct {
	Binary   string             // path it was started as; empty: it cannot be replaced
	Args     []string           // without the name
	Check    []string           // arguments that make the binary check its configuration
	Takeover uintptr            // descriptor of the process to take over from; 0: none
	Notify   func(state string) // notifies the service manager (sd_notify)
	Barrier  func(context.Context)
	End      func() // ends the process at once
}

// withDefaults returns p with functions that do nothing for those that are nil.
func (p Process) withDefaults() Process {
	if p.Notify == nil {
		p.Notify = func(string) {}
	}
	if p.Barrier == nil {
		p.Barrier = func(context.Context) {}
	}
	if p.End == nil {
		p.End = func() {}
	}
	return p
}

// RestartError ends a daemon when another program must be started in place of this one, because it cannot take over.
type RestartError struct {
	Binary string
	Reason string
}

func (e *RestartError) Error() string { return "restart as " + e.Binary + ": " + e.Reason }

// ReadDescriptor returns the descriptor of the process to take over from, 0 when there is none. It removes Env.
func ReadDescriptor(getenv func(string) string) (uintptr, error) {
	text := getenv(Env)
	if text == "" {
		return 0, nil
	}
	var fd uintptr
	if _, err := fmt.Sscanf(text, "%d", &fd); err != nil || fd < 3 {
		return 0, fmt.Errorf("%s=%q names no descriptor", Env, text)
	}
	return fd, os.Unsetenv(Env)
}

// monotonicUsec is the time that service managers compare.
func monotonicUsec() string {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return strconv.FormatInt(ts.Nano()/1000, 10)
}
