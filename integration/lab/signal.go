package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// Signal sends sig to the command itself, not to its children.
func (p *Process) Signal(sig syscall.Signal) error {
	pid := p.PID()
	if pid == 0 {
		return fmt.Errorf("signal %s: %w", p, ErrNotRunning)
	}
	return syscall.Kill(pid, sig)
}

// Stop sends SIGTERM and waits for the end; a process that outlives its grace is killed and that is an error.
func (p *Process) Stop(ctx context.Context) error {
	r := p.current()
	if r == nil || r.ended() {
		return nil
	}
	_ = p.Resume() // a stopped process would not hear it
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, ErrNotRunning) && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop %s: %w", p, err)
	}
	select {
	case <-r.done:
		return nil
	case <-time.After(p.Grace):
	case <-ctx.Done():
	}
	return errors.Join(fmt.Errorf("stop %s: still there after %s, killed", p, p.Grace), p.Kill())
}

// Kill ends the command and everything below it with SIGKILL, as a power cut would.
func (p *Process) Kill() error {
	r := p.current()
	if r == nil || r.ended() {
		return nil
	}
	if err := killTree(r.cmd.Process.Pid, 20*time.Second); err != nil {
		return fmt.Errorf("kill %s: %w", p, err)
	}
	select {
	case <-r.done:
		return nil
	case <-time.After(20 * time.Second):
		return fmt.Errorf("kill %s: its supervisor does not end", p)
	}
}

// Pause stops the command and everything below it (SIGSTOP), as a virtual machine does that is being moved.
func (p *Process) Pause() error { return p.signalAll(syscall.SIGSTOP) }

// Resume continues what Pause stopped.
func (p *Process) Resume() error { return p.signalAll(syscall.SIGCONT) }

func (p *Process) signalAll(sig syscall.Signal) error {
	r := p.current()
	if r == nil || r.ended() {
		return fmt.Errorf("signal %s: %w", p, ErrNotRunning)
	}
	signalTree(r.cmd.Process.Pid, sig)
	return nil
}

// Restart stops and starts, without waiting for readiness.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Tail returns the last lines of the log, each behind the process's name.
func (p *Process) Tail(lines int) string {
	return tail(p.log, lines, p.String()+"| ")
}

// Logged tells whether the log contains text.
func (p *Process) Logged(text string) bool {
	raw, err := os.ReadFile(p.log)
	return err == nil && strings.Contains(string(raw), text)
}

func tail(path string, lines int, prefix string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return prefix + err.Error()
	}
	all := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return prefix + strings.Join(all, "\n"+prefix)
}

// Tails returns the end of every process's log. Tests that have failed show it.
func (l *Lab) Tails(lines int) string {
	var b strings.Builder
	for _, p := range l.Processes() {
		if p.current() == nil {
			continue
		}
		fmt.Fprintf(&b, "== %s (running: %t)\n%s\n", p, p.Running(), p.Tail(lines))
	}
	return b.String()
}

// SignalTitled sends sig to every process below the command whose title contains text (Salt names its processes:
// MWorker-1), and returns how many there were.
func (p *Process) SignalTitled(sig syscall.Signal, text string) (n int, err error) {
	r := p.current()
	if r == nil || r.ended() {
		return 0, fmt.Errorf("signal %s: %w", p, ErrNotRunning)
	}
	for _, pid := range descendants(r.cmd.Process.Pid) {
		title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(title), text) && syscall.Kill(pid, sig) == nil {
			n++
		}
	}
	return n, nil
}

// Tree tells of the command and of every process below it what it is, and where in the kernel it waits: why a job has
// not ended. Tests that have failed show it.
func (p *Process) Tree() string {
	r := p.current()
	if r == nil || r.ended() {
		return p.String() + " does not run\n"
	}
	var b strings.Builder
	root := r.cmd.Process.Pid
	for _, pid := range append([]int{root}, descendants(root)...) {
		of := func(name string) string {
			raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
			if err != nil {
				return "?"
			}
			return strings.TrimSpace(strings.ReplaceAll(string(raw), "\x00", " "))
		}
		fmt.Fprintf(&b, "%s| %d waits in %s, system call %s: %s\n", p, pid, of("wchan"), of("syscall"), of("cmdline"))
	}
	return b.String()
}
