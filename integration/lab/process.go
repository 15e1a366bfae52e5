package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrNotRunning is returned for signals to a process that does not run.
var ErrNotRunning = errors.New("not running")

// Spec says what a Process runs.
type Spec struct {
	Name  string                          // names the log file; unique on the host
	Argv  []string                        // the first is an absolute path
	Env   []string                        // added to a minimal environment
	Stdin *os.File                        // nil: /dev/null
	Grace time.Duration                   // Stop waits that long after SIGTERM before it kills; 0: 30 s
	Ready func(ctx context.Context) error // polled by WaitReady; nil: running is ready
	// Notify gives it a NOTIFY_SOCKET as systemd's: it may name another process as the command (MAINPID).
	Notify bool
}

// Process is a command on a host, with all processes it starts. It may be started again after it has ended.
type Process struct {
	Spec
	host   *Host
	log    string
	mu     sync.Mutex
	run    *running
	starts int

	seams     SeamKind
	seamsFile string
}

// running is one life of a process.
type running struct {
	cmd  *exec.Cmd    // the supervisor
	main atomic.Int64 // the command itself; 0: it could not be started
	life *os.File
	done chan struct{}
	code int
}

// NewProcess declares a process; Start starts it.
func (h *Host) NewProcess(s Spec) *Process {
	if s.Grace == 0 {
		s.Grace = 30 * time.Second
	}
	p := &Process{Spec: s, host: h, log: filepath.Join(h.lab.dir, "log", h.Name+"-"+s.Name+".log")}
	h.lab.mu.Lock()
	h.lab.procs = append(h.lab.procs, p)
	h.lab.mu.Unlock()
	return p
}

// Host is where the process runs.
func (p *Process) Host() *Host { return p.host }

// LogPath is the file with everything it printed, over all its starts.
func (p *Process) LogPath() string { return p.log }

// Start starts the command and returns at once; see WaitReady.
func (p *Process) Start(_ context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && !p.run.ended() {
		return fmt.Errorf("start %s: already running", p)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", p, err)
	}
	defer log.Close()
	p.starts++
	if p.starts > 1 {
		fmt.Fprintf(log, "---- start %d\n", p.starts)
	}
	o := order{Argv: p.Argv, Env: p.Env, Seams: p.seams, SeamFile: p.seamsFile, Notify: p.Notify}
	run, err := p.host.launch(o, p.Stdin, log, log)
	if err != nil {
		return fmt.Errorf("start %s: %w", p, err)
	}
	p.run = run
	return nil
}

// launch starts a command below a supervisor on the host.
func (h *Host) launch(o order, stdin *os.File, stdout, stderr io.Writer) (*running, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o.Env, o.Dir, o.NS, o.Hostname, o.Etc = mergeEnv(h.environ(), o.Env...), h.dir, h.ns, h.Name, h.etc
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	lifeR, lifeW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifeR.Close()
	statusR, statusW, err := os.Pipe()
	if err != nil {
		lifeW.Close()
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = []string{superviseEnv + "=" + string(text), "GOMAXPROCS=1"}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if stdin != nil {
		cmd.Stdin = stdin
	}
	cmd.ExtraFiles = []*os.File{lifeR, statusW}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for us, not for them
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Start()
	statusW.Close()
	if err != nil {
		lifeW.Close()
		statusR.Close()
		return nil, err
	}
	r := &running{cmd: cmd, life: lifeW, done: make(chan struct{})}
	status := bufio.NewReader(statusR)
	r.follow(status)
	go func() { // until the supervisor has ended
		defer statusR.Close()
		for r.follow(status) {
		}
	}()
	h.mu.Lock()
	h.runs[r] = struct{}{}
	h.mu.Unlock()
	go func() {
		r.wait()
		h.mu.Lock()
		delete(h.runs, r)
		h.mu.Unlock()
	}()
	return r, nil
}

// follow reads which process is the command now; the log says why when there is none.
func (r *running) follow(status *bufio.Reader) bool {
	line, err := status.ReadString('\n')
	if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
		r.main.Store(int64(pid))
	}
	return err == nil
}

func (r *running) wait() {
	_ = r.cmd.Wait()
	r.code = r.cmd.ProcessState.ExitCode()
	r.life.Close()
	close(r.done)
}

func (r *running) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// environ is what every command on the host sees: nothing of the caller's settings, so that a lab is the same
// everywhere.
func (h *Host) environ() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + h.dir, "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=dumb", "TZ=" + h.lab.opts.Zone,
		"PYTHONWARNINGS=ignore", "PYTHONDONTWRITEBYTECODE=",
	}
}

// mergeEnv adds settings to an environment; a later one replaces an earlier one of the same name, for getenv(3) sees
// the first.
func mergeEnv(base []string, over ...string) []string {
	var out []string
	for _, kv := range append(slices.Clone(base), over...) {
		name, _, _ := strings.Cut(kv, "=")
		i := slices.IndexFunc(out, func(o string) bool { return strings.HasPrefix(o, name+"=") })
		if i < 0 {
			out = append(out, kv)
		} else {
			out[i] = kv
		}
	}
	return out
}

func (p *Process) current() *running {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// Running tells whether the command has been started and has not ended.
func (p *Process) Running() bool { r := p.current(); return r != nil && !r.ended() }

// PID of the command itself; 0 when it does not run.
func (p *Process) PID() int {
	if r := p.current(); r != nil && !r.ended() {
		return int(r.main.Load())
	}
	return 0
}

// Done is closed when the present life of the process ends; nil before the first Start.
func (p *Process) Done() <-chan struct{} {
	if r := p.current(); r != nil {
		return r.done
	}
	return nil
}

// ExitCode of the last life, 128+n after signal n; -1 while it runs.
func (p *Process) ExitCode() int {
	if r := p.current(); r != nil && r.ended() {
		return r.code
	}
	return -1
}

// WaitReady waits until the process is ready for use, and fails at once when it ends meanwhile.
func (p *Process) WaitReady(ctx context.Context, within time.Duration) error {
	r := p.current()
	if r == nil {
		return fmt.Errorf("wait for %s: %w", p, ErrNotRunning)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-r.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := Eventually(ctx, within, p.String()+" to be ready", func(ctx context.Context) error {
		switch {
		case r.ended():
			return fmt.Errorf("it ended with code %d", r.code)
		case p.Ready == nil:
			return nil
		}
		return p.Ready(ctx)
	})
	if err != nil && r.ended() {
		err = fmt.Errorf("%s ended with code %d before it was ready", p, r.code)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.Tail(15))
	}
	return nil
}

func (p *Process) String() string { return p.host.Name + "/" + p.Name }
