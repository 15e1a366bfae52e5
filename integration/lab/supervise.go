package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// superviseEnv holds the order for a supervisor; a program that links this package becomes one when it is set.
const superviseEnv = "SALTCLUSTER_LAB_SUPERVISE"

// order is what a supervisor runs, and where.
type order struct {
	Argv     []string
	Env      []string
	Dir      string
	NS       string // network namespace, empty: none
	Hostname string
	Etc      string // directory whose hosts and resolv.conf are seen in /etc; only with NS
	Seams    SeamKind
	SeamFile string
	Notify   bool // give it a NOTIFY_SOCKET
}

// Files a supervisor inherits beyond the standard three.
const (
	fdLife   = 3 // reads until the program that started us is gone
	fdStatus = 4 // gets the process id of the command as a line
)

// A supervisor must be the whole program, from its first moment: it changes namespaces of its main thread, which is the
// one init functions run on, and it must not run the rest of main. Hence the init.
func init() {
	if text, ok := os.LookupEnv(superviseEnv); ok {
		runtime.LockOSThread()
		code, err := supervise(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, "lab:", err)
			code = 125
		}
		os.Exit(code)
	}
}

func supervise(text string) (int, error) {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return 0, fmt.Errorf("read order: %w", err)
	}
	syscall.CloseOnExec(fdLife)
	syscall.CloseOnExec(fdStatus)
	// Salt's job processes leave their process group and session; as a subreaper we stay their ancestor all the same.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("become subreaper: %w", err)
	}
	if o.NS != "" {
		if err := o.enter(); err != nil {
			return 0, err
		}
	}
	if err := os.Chdir(o.Dir); err != nil {
		return 0, err
	}
	var notified *notifySocket
	if o.Notify {
		var err error
		if notified, err = openNotifySocket(); err != nil {
			return 0, err
		}
		o.Env = mergeEnv(o.Env, "NOTIFY_SOCKET="+notified.name)
	}
	pid, err := o.start()
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", o.Argv[0], err)
	}
	status := os.NewFile(fdStatus, "status")
	fmt.Fprintln(status, pid)
	var main atomic.Int64
	main.Store(int64(pid))
	if notified != nil {
		go notified.follow(&main, status)
	} else {
		status.Close()
	}
	go func() { // the program's end of the pipe closes when it dies
		os.NewFile(fdLife, "life").Read(make([]byte, 1))
		killTree(os.Getpid(), 10*time.Second)
		os.Exit(124)
	}()
	code := reap(&main)
	err = killTree(os.Getpid(), 10*time.Second)
	reapRest()
	return code, err
}

// reapRest reaps whoever has ended. They would be left to init, which may take its time, and a daemon that finds the
// process id of its pid file meanwhile does not start ("An instance is already running").
func reapRest() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if err != syscall.EINTR && (err != nil || pid == 0) {
			return
		}
	}
}

// start starts the command, below its seams if it has any.
func (o *order) start() (pid int, err error) {
	files := []uintptr{0, 1, 2}
	if o.Seams != 0 {
		l, err := newLiar(o.Seams, o.SeamFile)
		if err != nil {
			return 0, err
		}
		go l.run()
	}
	if o.Seams&SeamClock != 0 {
		return startWithoutVDSO(o.Argv, o.Env, files)
	}
	return syscall.ForkExec(o.Argv[0], o.Argv, &syscall.ProcAttr{Env: o.Env, Files: files})
}

func (o *order) enter() error {
	if err := enterNamespace(o.NS); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWUTS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Sethostname([]byte(o.Hostname)); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	switch err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); {
	case errors.Is(err, unix.EINVAL):
		// The root of a chroot is not a mount: we do without files of our own then, rather than mount what all can see.
		return nil
	case err != nil:
		return fmt.Errorf("make mounts private: %w", err)
	}
	for _, name := range []string{"hosts", "resolv.conf"} {
		target := "/etc/" + name
		if _, err := os.Stat(target); err != nil {
			continue
		}
		if err := unix.Mount(filepath.Join(o.Etc, name), target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", target, err)
		}
	}
	return nil
}

// reap waits for every child, also adopted ones, until main has ended, and returns its exit code as a shell would.
func reap(main *atomic.Int64) int {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 125
		}
		if int64(pid) != main.Load() {
			continue
		}
		if ws.Signaled() {
			return 128 + int(ws.Signal())
		}
		return ws.ExitStatus()
	}
}
