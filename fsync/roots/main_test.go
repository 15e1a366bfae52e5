package roots

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// ownMounts is set where no other process has copies of this one's mounts.
const ownMounts = "SALTCLUSTER_OWN_MOUNTS"

func TestMain(m *testing.M) {
	if os.Geteuid() == 0 && os.Getenv(ownMounts) == "" {
		if code, ok := runApart(); ok {
			os.Exit(code)
		}
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// runApart runs the tests in a mount namespace of their own; false: that is not allowed here. A namespace that another
// process makes meanwhile, a lab for one, would have a copy of each mount, and so hold a disk that was unmounted here.
func runApart() (code int, ok bool) {
	runtime.LockOSThread() // whose end would be that of the child
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, false
	}
	return cmd.ProcessState.ExitCode(), true
}
