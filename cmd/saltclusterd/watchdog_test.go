package main

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"saltclusterd/integration/check"
)

func TestWatchdogEvery(t *testing.T) {
	own := strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		name      string
		usec, pid string
		takeover  bool
		want      time.Duration
		mine      bool // WATCHDOG_PID is ours afterwards
		fails     bool
	}{
		{name: "nobody asks"},
		{name: "asked", usec: "60000000", pid: own, want: 20 * time.Second, mine: true},
		{name: "asked without a pid", usec: "3000000", want: time.Second, mine: true},
		{name: "another process is asked", usec: "3000000", pid: "1"},
		{name: "taken over from it", usec: "3000000", pid: "1", takeover: true, want: time.Second, mine: true},
		{name: "nonsense", usec: "soon", pid: own, fails: true},
		{name: "no time at all", usec: "0", pid: own, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := map[string]string{"WATCHDOG_USEC": c.usec, "WATCHDOG_PID": c.pid}
			got, err := watchdogEvery(func(n string) string { return env[n] },
				func(n, v string) error { env[n] = v; return nil }, c.takeover)
			if got != c.want || (err != nil) != c.fails || (env["WATCHDOG_PID"] == own) != (c.mine || c.pid == own) {
				t.Errorf("%v, %v, %v", got, err, env)
			}
		})
	}
}

func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stuck, said := make(chan struct{}), make(chan string)
	beats, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		runWatchdog(ctx, time.Millisecond, func() {
			if beats++; beats > 3 {
				<-stuck
			}
		}, func(s string) { said <- s })
	}()
	for range 3 {
		check.Equal(t, <-said, "WATCHDOG=1", "said")
	}
	select {
	case s := <-said:
		t.Errorf("said %q while the pulse does not come back", s)
	case <-time.After(20 * time.Millisecond): // longer proves no more
	}
	close(stuck)
	<-said
	cancel()
	for {
		select {
		case <-said:
		case <-ended:
			return
		}
	}
}

func TestStopping(t *testing.T) {
	notifyStopping(65*time.Second, func(s string) {
		check.Equal(t, s, "STOPPING=1\nEXTEND_TIMEOUT_USEC=65000000")
	})
}
