package eventbus

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
)

func TestUmaskIn(t *testing.T) {
	const uids = "Uid:\t0\t450\t450\t450\n"
	for _, c := range []struct {
		name, status string
		want         uint32
		ok           bool
	}{
		{"usual", "Name:\tsalt-master\nUmask:\t0022\nState:\tS\n" + uids, 0o022, true},
		{"private", "Umask:\t0077\n" + uids, 0o077, true},
		{"none", "Umask:\t0000\n" + uids, 0, true},
		{"for a socket", "Umask:\t0177\n" + uids, 0, false},
		{"another user's process", "Umask:\t0022\nUid:\t0\t0\t0\t0\n", 0, false},
		{"old kernel", "Name:\tsalt-master\n" + uids, 0, false},
		{"no number", "Umask:\t9\n" + uids, 0, false},
		{"too large", "Umask:\t7777777\n" + uids, 0, false},
		{"name with a line", "Name:\tUmask:\nUmask:\t0027\n" + uids, 0o027, true},
		{"empty", "", 0, false},
	} {
		got, err := umaskIn(c.status, 450)
		if (err == nil) != c.ok || got != c.want || err != nil && !errors.Is(err, ErrNoUmask) {
			t.Errorf("%s: %03o, %v", c.name, got, err)
		}
	}
}

// TestUmaskOfListener: it is the umask of the process that listens, as it is when one asks.
func TestUmaskOfListener(t *testing.T) {
	dir := t.TempDir()
	cfg := &localmaster.Config{SockDir: dir}
	if _, err := Umask(t.Context(), cfg); !errors.Is(err, ErrNoUmask) {
		t.Errorf("no master: %v", err)
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", filepath.Join(dir, "master_event_pull.ipc"))
	require.NoError(t, err)
	defer l.Close()
	defer unix.Umask(unix.Umask(0))
	for _, mask := range []int{0o022, 0o077, 0o027, 0o002} {
		unix.Umask(mask)
		if got, err := Umask(t.Context(), cfg); err != nil || got != uint32(mask) {
			t.Errorf("%03o: %03o, %v", mask, got, err)
		}
	}
	if got, err := Umask(t.Context(), &localmaster.Config{SockDir: dir, IPCMode: "tcp"}); !errors.Is(err, ErrNoUmask) {
		t.Errorf("tcp: %03o, %v", got, err)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "master_event_pull.ipc")))
}
