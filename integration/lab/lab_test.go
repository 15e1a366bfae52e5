package lab_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

func newLab(t *testing.T, loopback bool) *lab.Lab {
	t.Helper()
	l, err := lab.New(t.Context(), lab.Options{Loopback: loopback, Logf: t.Logf})
	labtest.Must(t, err)
	t.Cleanup(func() { labtest.Must(t, l.Close()) })
	return l
}

func host(t *testing.T, l *lab.Lab, name string) *lab.Host {
	t.Helper()
	h, err := l.Host(t.Context(), name)
	labtest.Must(t, err)
	return h
}

// modes runs f in a lab of namespaces, when root, and in one of loopback addresses.
func modes(t *testing.T, f func(*testing.T, *lab.Lab)) {
	t.Run("loopback", func(t *testing.T) { f(t, newLab(t, true)) })
	t.Run("namespaces", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root")
		}
		f(t, newLab(t, false))
	})
}

func TestExecReturnsOutputAndCode(t *testing.T) {
	modes(t, func(t *testing.T, l *lab.Lab) {
		res, err := host(t, l, "m1").Exec(t.Context(), []string{"X=7"}, "/bin/sh", "-c", "echo out $X; echo err >&2; exit 3")
		labtest.Must(t, err)
		if res.Stdout != "out 7\n" || res.Stderr != "err\n" || res.Code != 3 || res.Err() == nil {
			t.Errorf("got %+v", res)
		}
	})
}

func TestExecEndsWithItsContext(t *testing.T) {
	l := newLab(t, true)
	ctx, cancel := context.WithCancel(t.Context())
	pidFile := filepath.Join(l.Dir(), "pid")
	go func() {
		_ = lab.Eventually(t.Context(), 10*time.Second, "the child", func(context.Context) error {
			_, err := readPID(pidFile)
			return err
		})
		cancel()
	}()
	// setsid: a child that leaves session and process group, as Salt's job processes do.
	_, err := host(t, l, "m1").Exec(ctx, nil, "/bin/sh", "-c", "setsid sh -c 'echo $$ > "+pidFile+"; sleep 100' & wait")
	check.ErrorIs(t, err, context.Canceled, "error")
	mustBeGone(t, pidFile)
}

func TestKillTakesTheWholeTree(t *testing.T) {
	modes(t, func(t *testing.T, l *lab.Lab) {
		pidFile := filepath.Join(l.Dir(), "pid")
		p := host(t, l, "m1").NewProcess(lab.Spec{
			Name: "tree", Argv: []string{"/bin/sh", "-c", "setsid sh -c 'echo $$ > " + pidFile + "; sleep 100 & wait' & wait"},
		})
		labtest.Must(t, p.Start(t.Context()))
		labtest.Must(t, lab.Eventually(t.Context(), 10*time.Second, "the child", func(context.Context) error {
			_, err := readPID(pidFile)
			return err
		}))
		labtest.Must(t, p.Pause())
		pid, _ := readPID(pidFile)
		labtest.Must(t, lab.Eventually(t.Context(), 5*time.Second, "the child to stop", func(context.Context) error {
			if s := state(pid); s != "T" {
				return fmt.Errorf("state %s", s)
			}
			return nil
		}))
		labtest.Must(t, p.Kill())
		mustBeGone(t, pidFile)
		if p.Running() || p.ExitCode() != 128+9 {
			t.Errorf("running %t, exit code %d", p.Running(), p.ExitCode())
		}
		labtest.Must(t, os.Remove(pidFile))
		labtest.Must(t, p.Start(t.Context())) // a process has many lives
		labtest.Must(t, p.Stop(t.Context()))
	})
}

// TestKillLeavesNoZombies: a daemon that is started right after it was killed must not find its former process id.
func TestKillLeavesNoZombies(t *testing.T) {
	l := newLab(t, true)
	pidFile := filepath.Join(l.Dir(), "pids")
	const most = 50
	p := host(t, l, "m1").NewProcess(lab.Spec{Name: "tree", Argv: []string{"/bin/sh", "-c",
		fmt.Sprintf("for i in $(seq %d); do sleep 100 & echo $! >> %s; done; wait", most, pidFile)}})
	labtest.Must(t, p.Start(t.Context()))
	var pids []string
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the children", func(context.Context) error {
		raw, err := os.ReadFile(pidFile)
		if pids = strings.Fields(string(raw)); err == nil && len(pids) < most {
			err = fmt.Errorf("%d of them", len(pids))
		}
		return err
	}))
	labtest.Must(t, p.Kill())
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		labtest.Must(t, err)
		check.Equal(t, state(pid), "", "process", pid, "is still there")
	}
}

func TestWaitReady_ProcessExits(t *testing.T) {
	l := newLab(t, true)
	p := host(t, l, "m1").NewProcess(lab.Spec{
		Name: "short", Argv: []string{"/bin/sh", "-c", "echo no luck; exit 4"},
		Ready: func(context.Context) error { return errors.New("never") },
	})
	labtest.Must(t, p.Start(t.Context()))
	err := p.WaitReady(t.Context(), time.Minute)
	if err == nil || !strings.Contains(err.Error(), "code 4") || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("error is %v", err)
	}
}

func TestHosts_Connect(t *testing.T) {
	modes(t, func(t *testing.T, l *lab.Lab) {
		a, b := host(t, l, "m1"), host(t, l, "m2")
		labtest.Must(t, echo(t, a, b))
		labtest.Must(t, echo(t, b, a))
	})
}

func TestFaultsNeedNamespaces(t *testing.T) {
	l := newLab(t, true)
	check.NoError(t, l.Isolate(t.Context(), host(t, l, "m1")), "isolating the only host")
	host(t, l, "m2")
	check.ErrorIs(t, l.Isolate(t.Context(), host(t, l, "m1")), lab.ErrNeedsRoot, "error")
}

func TestPartitionAndHeal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	l := newLab(t, false)
	a, b, c := host(t, l, "a"), host(t, l, "b"), host(t, l, "c")
	labtest.Must(t, echo(t, a, b))
	labtest.Must(t, l.Partition(t.Context(), []*lab.Host{a}, []*lab.Host{b}))
	if err := echo(t, a, b); err == nil {
		t.Error("a reaches b")
	}
	if err := echo(t, b, a); err == nil {
		t.Error("b reaches a")
	}
	labtest.Must(t, echo(t, a, c))
	labtest.Must(t, echo(t, c, b))
	labtest.Must(t, l.Heal(t.Context()))
	labtest.Must(t, echo(t, a, b))
	labtest.Must(t, l.Isolate(t.Context(), c))
	if err := echo(t, c, b); err == nil {
		t.Error("c reaches b")
	}
	labtest.Must(t, l.Heal(t.Context()))
	labtest.Must(t, echo(t, c, b))
}

func TestDelay(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	l := newLab(t, false)
	a, b := host(t, l, "a"), host(t, l, "b")
	labtest.Must(t, echo(t, a, b))
	labtest.Must(t, l.Delay(t.Context(), b, lab.Latency{Each: 40 * time.Millisecond, Jitter: 5 * time.Millisecond}))
	labtest.Must(t, echo(t, a, b)) // also: the line carries neighbour discovery
	start := time.Now()
	labtest.Must(t, echo(t, a, b)) // connect and one answer: two round trips of 80 ms
	if took := time.Since(start); took < 160*time.Millisecond {
		t.Errorf("two round trips took %s", took)
	}
	labtest.Must(t, l.Heal(t.Context()))
	labtest.Must(t, echo(t, a, b))
}

// echo connects from one host to another and gets 100 kB back.
func TestLoss(t *testing.T) {
	l := newLab(t, false)
	labtest.NeedNetwork(t, l)
	a, b := host(t, l, "m1"), host(t, l, "m2")
	labtest.Must(t, echo(t, a, b))
	labtest.Must(t, l.Delay(t.Context(), b, lab.Latency{Loss: 1}))
	if echo(t, a, b) == nil {
		t.Error("an answer came through")
	}
	labtest.Must(t, l.Delay(t.Context(), b, lab.Latency{Loss: 0.3}))
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "an answer",
		func(context.Context) error { return echo(t, a, b) }))
	labtest.Must(t, l.Heal(t.Context()))
	labtest.Must(t, echo(t, a, b))
}

func echo(t *testing.T, from, to *lab.Host) error {
	t.Helper()
	ln, err := to.Listen(t.Context(), "tcp", to.Addr+":0")
	labtest.Must(t, err)
	defer ln.Close()
	go func() {
		if c, err := ln.Accept(); err == nil {
			_, _ = c.Write(make([]byte, 100_000))
			c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	c, err := from.Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	labtest.Must(t, c.SetDeadline(time.Now().Add(2*time.Second)))
	n := 0
	for buf := make([]byte, 32<<10); n < 100_000; {
		m, err := c.Read(buf)
		if n += m; err != nil {
			return fmt.Errorf("after %d bytes: %w", n, err)
		}
	}
	return nil
}

func TestClose_LeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	l, err := lab.New(t.Context(), lab.Options{})
	labtest.Must(t, err)
	p := host(t, l, "m1").NewProcess(lab.Spec{Name: "sleep", Argv: []string{"/bin/sleep", "100"}})
	labtest.Must(t, p.Start(t.Context()))
	pid := p.PID()
	labtest.Must(t, l.Close())
	if state(pid) != "" {
		t.Errorf("process %d is still there", pid)
	}
	if left, _ := filepath.Glob("/run/netns/scl" + l.ID() + "*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(l.Dir()); err == nil {
		t.Errorf("%s is still there", l.Dir())
	}
}

// Labs that begin and end at the same time, as those of two halves of the scenarios do, do not take each other for
// dead.
func TestLabsAtOnce(t *testing.T) {
	var all errgroup.Group
	for range 8 {
		all.Go(func() error {
			for range 20 {
				l, err := lab.New(t.Context(), lab.Options{Loopback: true})
				if err != nil {
					return err
				}
				if _, err := os.Stat(l.Dir()); err != nil {
					return errors.Join(err, l.Close())
				}
				if err := l.Close(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	labtest.Must(t, all.Wait())
}

func TestHostNameAndHosts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	l := newLab(t, false)
	a := host(t, l, "m1")
	host(t, l, "m2")
	res, err := a.Exec(t.Context(), nil, "/bin/sh", "-c", "hostname; getent hosts m2 | cut -d' ' -f1")
	labtest.Must(t, err)
	if want := "m1\n10.99.0.12\n"; res.Stdout != want {
		t.Errorf("got %q, want %q", res.Stdout, want)
	}
	if ip, _, _ := net.ParseCIDR(a.Addr + "/24"); ip == nil {
		t.Errorf("address %s", a.Addr)
	}
}

func readPID(path string) (int, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(raw)))
}

func mustBeGone(t *testing.T, pidFile string) {
	t.Helper()
	pid, err := readPID(pidFile)
	labtest.Must(t, err)
	if err := syscall.Kill(pid, 0); err == nil && state(pid) != "Z" {
		t.Errorf("process %d lives", pid)
	}
}

// state of a process, a letter; empty when it is gone.
func state(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))[0]
}
