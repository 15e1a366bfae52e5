package migration

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/fsync/unshare"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// runUnprivileged runs the test that calls it again as a user other than root, and says whether this is that run.
func runUnprivileged(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = []string{"TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "---") { // it could not even begin
		t.Skipf("as another user: %v: %s", err, out)
	}
	if err != nil {
		t.Errorf("as another user: %v\n%s", err, out)
	}
	return false
}

func userName(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		return strconv.Itoa(os.Geteuid())
	}
	return u.Username
}

// A saltclusterd that does not run as root may not make a directory in /var/lib: it names the directory, and resumes
// when that exists.
func TestSteps_CopyUnprivileged(t *testing.T) {
	if !runUnprivileged(t) {
		return
	}
	h, top := newSharedHost(t)
	require.NoError(t, os.MkdirAll(top+"/var/lib", 0o755))
	require.NoError(t, os.Chmod(top+"/var/lib", 0o555))
	t.Cleanup(func() { _ = os.Chmod(top+"/var/lib", 0o755) })
	p := h.makePlan("")
	steps := strings.Join(h.describePlan(p, "", make([]unshare.Size, len(p.Trees))), "\n")
	if !strings.Contains(steps, "by hand: install -d -o "+userName(t)+" -m 0750 "+top+"/var/lib/salt-master") {
		t.Errorf("the plan says\n%s", steps)
	}
	s := NewSteps(StepsConfig{Host: h})
	done := make(chan error, 1)
	go func() { done <- s.copyShare(t.Context(), "") }()
	var asked []string
	for end := time.Now().Add(30 * time.Second); len(asked) == 0; time.Sleep(5 * time.Millisecond) {
		if n := h.describe(); n.ByHand != nil {
			asked = n.ByHand.Commands
		}
		if time.Now().After(end) {
			t.Fatal("the operator is not asked")
		}
	}
	if len(asked) != 1 || !strings.HasPrefix(asked[0], "install -d ") {
		t.Errorf("%q", asked)
	}
	require.NoError(t, os.Chmod(top+"/var/lib", 0o755))
	check.NoError(t, <-done)
	if text, err := os.ReadFile(top + "/var/lib/salt-master/pki/minions/web1"); err != nil || string(text) != "key" {
		t.Errorf("%q, %v", text, err)
	}
}
