package daemon

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
)

// asNobody runs the test that calls it again as somebody who is not root, and says whether this is that run.
func asNobody(t *testing.T) bool {
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

func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		return strconv.Itoa(os.Geteuid())
	}
	return u.Username
}

// A saltclusterd that does not run as root may not make a directory in /var/lib: it says which, and goes on when it is there.
func TestMigrateAsAnotherUser(t *testing.T) {
	if !asNobody(t) {
		return
	}
	d, top := sharedHost(t)
	g := d.migration
	if err := os.MkdirAll(top+"/var/lib", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(top+"/var/lib", 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(top+"/var/lib", 0o755) })
	p := g.plan("")
	if steps := strings.Join(g.planSteps(p, "", make([]unshare.Size, len(p.Trees))), "\n"); !strings.Contains(steps, "by hand: install -d -o "+me(t)+" -m 0750 "+top+"/var/lib/salt-master") {
		t.Errorf("the plan says\n%s", steps)
	}
	s := &service{m: &member{d: d}}
	done := make(chan error, 1)
	go func() { done <- s.copyShare(t.Context(), "") }()
	var asked []string
	for end := time.Now().Add(30 * time.Second); len(asked) == 0; time.Sleep(5 * time.Millisecond) {
		if n := g.describe(true); n.ByHand != nil {
			asked = n.ByHand.Commands
		}
		if time.Now().After(end) {
			t.Fatal("nobody is asked")
		}
	}
	if len(asked) != 1 || !strings.HasPrefix(asked[0], "install -d ") {
		t.Errorf("%q", asked)
	}
	if err := os.Chmod(top+"/var/lib", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(top + "/var/lib/salt-master/pki/minions/web1"); err != nil || string(text) != "key" {
		t.Errorf("%q, %v", text, err)
	}
}
