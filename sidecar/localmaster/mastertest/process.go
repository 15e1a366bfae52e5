package mastertest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a command in a process group of its own, with a watchdog in the same group that kills the group when
// the test binary dies without cleaning up (a -timeout panic, a SIGKILL).
type process struct {
	cmd      *exec.Cmd
	watchdog *exec.Cmd
	hold     io.Closer // the watchdog's stdin: closed means the test is gone
	done     chan struct{}
}

func startProcess(logPath, name string, args ...string) (*process, error) {
	out, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer out.Close()
	p := &process{cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { defer close(p.done); _ = p.cmd.Wait() }()
	if err := p.startWatchdog(); err != nil {
		p.killGroup()
		return nil, err
	}
	return p, nil
}

func (p *process) startWatchdog() error {
	pgid := p.cmd.Process.Pid
	p.watchdog = exec.Command("/bin/sh", "-c", fmt.Sprintf("trap '' TERM INT; cat >/dev/null; kill -KILL -%d", pgid))
	p.watchdog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: pgid}
	stdin, err := p.watchdog.StdinPipe()
	if err != nil {
		return fmt.Errorf("start watchdog: %w", err)
	}
	if err := p.watchdog.Start(); err != nil {
		return fmt.Errorf("start watchdog: %w", err)
	}
	p.hold = stdin
	return nil
}

// stopProcess asks the main process to end, then takes the whole group down.
func (p *process) stopProcess(grace time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
	}
	p.killGroup()
}

// killGroup ends the whole group at once. The group id cannot have been reused: the watchdog is still a member.
func (p *process) killGroup() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
	if p.hold != nil {
		_ = p.hold.Close()
		_ = p.watchdog.Wait()
	}
	p.awaitGroupEnd()
}

// awaitGroupEnd waits for the children, which init reaps, so that their ports and files are free afterwards.
func (p *process) awaitGroupEnd() {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if errors.Is(syscall.Kill(-p.cmd.Process.Pid, 0), syscall.ESRCH) {
			return
		}
	}
}

func (p *process) hasExited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
