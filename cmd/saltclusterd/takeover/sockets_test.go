package takeover

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// Both processes have the same listener, so the new one serves a connection that was made between them.
func TestSockets_Inherit(t *testing.T) {
	old, next := NewSockets(), NewSockets()
	ln, err := old.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	udp, err := old.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "s")
	unixLn, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	old.KeepUnix(path, unixLn)
	gone, err := old.Listen(t.Context(), "tcp", "127.0.0.2:0")
	require.NoError(t, err)
	_ = gone.Close() // is not handed over
	names, fds := old.Export()
	if len(names) != 3 || len(fds) != 3 {
		t.Fatalf("%q %v", names, fds)
	}
	for i, fd := range fds {
		if fds[i], err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			t.Fatal(err)
		}
	}
	next.Inherit(names, fds)
	require.NoError(t, next.Reserve(t.Context(), "tcp", "127.0.0.1:0"))
	old.DisownPaths()
	for _, c := range []interface{ Close() error }{ln, udp, unixLn} {
		_ = c.Close()
	}
	client, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	inherited, err := next.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil || inherited.Addr().String() != ln.Addr().String() {
		t.Fatalf("%v instead of %v: %v", inherited, ln.Addr(), err)
	}
	defer inherited.Close()
	if c, err := inherited.Accept(); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	inheritedUnix, err := next.InheritedUnix(path)
	if err != nil || inheritedUnix == nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("unix", path); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	next.KeepUnix(path, inheritedUnix)
	next.OwnPaths()
	_ = inheritedUnix.Close()
	if _, err := net.Dial("unix", path); err == nil {
		t.Error("the socket is left over after its last process")
	}
	packets, err := next.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil || packets.LocalAddr().String() != udp.LocalAddr().String() {
		t.Fatalf("%v: %v", packets, err)
	}
	_ = packets.Close()
	check.NoError(t, next.DiscardInherited())
}

// An inherited file that was not used leaves neither a descriptor nor a path. The error names a path that cannot be
// removed.
func TestDiscardInherited_Unused(t *testing.T) {
	dir := t.TempDir()
	old, next := NewSockets(), NewSockets()
	paths := map[string]string{}
	for _, name := range []string{"dead", "gone", "replaced", "unreachable"} {
		paths[name] = filepath.Join(dir, name, "s")
		require.NoError(t, os.Mkdir(filepath.Dir(paths[name]), 0o700))
		ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: paths[name], Net: "unix"})
		require.NoError(t, err)
		defer ln.Close()
		old.KeepUnix(paths[name], ln)
	}
	names, fds := old.Export()
	for i, fd := range fds {
		var err error
		if fds[i], err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			t.Fatal(err)
		}
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	copied, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err = errors.Join(err, w.Close(), r.SetReadDeadline(time.Now().Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	next.Inherit(append(names, "tcp 192.0.2.1:1"), append(fds, copied))
	for _, name := range []string{"gone", "replaced"} {
		require.NoError(t, os.Remove(paths[name]))
	}
	writeFile(t, paths["replaced"], "another file")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "unreachable")))
	writeFile(t, filepath.Join(dir, "unreachable"), "not a directory")

	err = next.DiscardInherited()
	if err == nil || !strings.Contains(err.Error(), paths["unreachable"]) {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"dead", "gone", "replaced"} {
		if err != nil && strings.Contains(err.Error(), paths[name]) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(paths[name]); (err == nil) != (name == "replaced") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a descriptor is still open: %v", err)
	}
}

// A process that fails to take over leaves the old one's unix socket in place.
func TestInheritedUnix_Closed(t *testing.T) {
	old, next := NewSockets(), NewSockets()
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	defer ln.Close()
	old.KeepUnix(path, ln)
	names, fds := old.Export()
	if fds[0], err = unix.FcntlInt(uintptr(fds[0]), unix.F_DUPFD_CLOEXEC, 3); err != nil {
		t.Fatal(err)
	}
	next.Inherit(names, fds)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Dir(path), link))
	inherited, err := next.InheritedUnix(filepath.Join(link, "s")) // the same, under another path
	if err != nil || inherited == nil {
		t.Fatal(err)
	}
	_ = inherited.Close()
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	_ = c.Close()
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1:1", "0.0.0.0:1", true}, {"[::]:1", "10.0.0.1:1", true}, {"10.0.0.1:1", "10.0.0.1:1", true},
		{":1", "10.0.0.1:1", true},
		{"localhost:1", "127.0.0.1:1", true}, {"[::ffff:10.0.0.1]:1", "10.0.0.1:1", true},
		{"10.0.0.1:1", "10.0.0.2:1", false}, {"127.0.0.1:1", "0.0.0.0:2", false},
		{"lock", "0.0.0.0:2", false}, {"", "", false},
	} {
		if addrsOverlap(c.a, c.b) != c.want || addrsOverlap(c.b, c.a) != c.want {
			t.Errorf("%q and %q: %t", c.a, c.b, !c.want)
		}
	}
}
