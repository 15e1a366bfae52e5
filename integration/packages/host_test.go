//go:build integration

package packages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

const (
	oldVersion = "0.0.1~a"
	newVersion = "0.0.1~b"
	salt       = "3008.3"
)

func needLong(t *testing.T) {
	t.Helper()
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("make test-packages")
	}
}

// made is where the packages of both versions are.
var made string

func TestMain(m *testing.M) {
	var err error
	if made, err = os.MkdirTemp("", "saltclusterd-packages"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(made); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// host is a machine with the packages of two versions in /packages, and Salt in a virtualenv.
type host struct {
	*machine
	t *testing.T
}

func newHost(t *testing.T) *host {
	t.Helper()
	return newHostOf(t, "m1", "10.99.0.11", salt)
}

// newHostOf makes one with a Salt of another version.
func newHostOf(t *testing.T, name, addr, salt string) *host {
	t.Helper()
	return newHostBootedBy(t, systemdInit, name, addr, salt)
}

// newHostBootedBy makes one with another first process.
func newHostBootedBy(t *testing.T, init initProgram, name, addr, salt string) *host {
	t.Helper()
	needLong(t)
	venvs := os.Getenv("SALTCLUSTER_VENVS")
	if _, err := os.Stat(filepath.Join(venvs, salt)); err != nil || os.Getuid() != 0 {
		t.Fatalf("this needs root, and Salt's virtualenvs in SALTCLUSTER_VENVS (make setup): %v", err)
	}
	dir, err := base(t.Context(), t.Log)
	require.NoError(t, err)
	for _, v := range []string{oldVersion, newVersion} {
		out := filepath.Join(made, v)
		if _, err := os.Stat(filepath.Join(out, "SHA256SUMS")); err != nil { // for the first test
			build(t.Context(), t, moduleRoot(t), out, v, "-arch", "amd64")
		}
	}
	m, err := boot(t.Context(), dir, t.TempDir(), name, addr, map[string]string{"/packages": made, venvs: venvs}, init)
	require.NoError(t, err)
	t.Cleanup(func() { check.NoError(t, m.close()) })
	h := &host{m, t}
	h.sh("chmod 711 /root") // where the virtualenvs may be, which the user salt runs
	h.sh("ln -s " + venvs + "/" + salt + "/bin/salt* /usr/local/bin/")
	return h
}

// sh runs a line of shell, which must succeed.
func (h *host) sh(script string) string {
	h.t.Helper()
	out, err := h.machine.sh(h.t.Context(), script)
	require.NoError(h.t, err)
	return strings.TrimSpace(out)
}

// fails runs one that must not.
func (h *host) fails(script string) string {
	h.t.Helper()
	out, err := h.machine.sh(h.t.Context(), script)
	if err == nil {
		h.t.Fatalf("%s succeeded:\n%s", script, out)
	}
	return out
}

func (h *host) write(path, text string) {
	h.t.Helper()
	h.sh("mkdir -p " + filepath.Dir(path) + "; cat > " + path + " <<'END'\n" + text + "\nEND\n")
}

func (h *host) has(out string, wanted ...string) {
	h.t.Helper()
	for _, w := range wanted {
		if !strings.Contains(out, w) {
			h.t.Errorf("%q is not in\n%s", w, out)
		}
	}
}

func (h *host) await(within time.Duration, what, script string) {
	h.t.Helper()
	err := await(h.t.Context(), within, what, func() error { _, err := h.machine.sh(h.t.Context(), script); return err })
	if err != nil {
		log, _ := h.machine.sh(h.t.Context(), "journalctl --no-pager -n 60")
		h.t.Fatalf("%v\n%s", err, log)
	}
}

// unit returns properties of saltclusterd's unit.
func (h *host) unit(name string) string {
	h.t.Helper()
	v, err := h.property(h.t.Context(), name)
	require.NoError(h.t, err)
	return v
}

// listing is every file with owner and mode, and the content of what is below /etc, without what changes by itself.
const listing = `find / -xdev \( -path /var/log -o -path /var/cache/apt -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/systemd -o -path /tmp \
 -o -path /var/tmp -o -path /root -o -path /packages -o -path '/var/cache/debconf*' -o -path /var/cache/ldconfig -o -name '*.pyc' -o -name __pycache__ \) -prune \
 -o -type d -printf '%p %m %u:%g\n' -o -printf '%p %m %u:%g %s %l\n' | grep -v '^/etc/\(passwd\|group\|shadow\|gshadow\|subuid\|subgid\)-\|^/etc/machine-id\|^/var/lib/rpm\|^/var/cache/salt\|^/run\|^/etc/\.pwd\.lock\|^/etc \|^/usr/lib/sysimage' | sort
 cat /etc/passwd /etc/group /etc/shadow /etc/gshadow`

// What was before and is not, and what is and was not.
func difference(before, after string) string {
	count := map[string]int{}
	for line := range strings.Lines(before) {
		count[line]--
	}
	for line := range strings.Lines(after) {
		count[line]++
	}
	var b strings.Builder
	for line, n := range count {
		if n != 0 {
			fmt.Fprintf(&b, "%+d %s", n, line)
		}
	}
	return b.String()
}
