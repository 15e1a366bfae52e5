package admin

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestSocketModeAndGroup(t *testing.T) {
	s, _ := start(t, &fakeBackend{}, func(c *Config) { c.Group = strconv.Itoa(os.Getegid()) })
	info, err := os.Stat(s.cfg.Socket)
	require.NoError(t, err)
	if info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v", info.Mode())
	}
	require.NoError(t, s.Close())
	if _, err := os.Stat(s.cfg.Socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there after Close: %v", err)
	}
}

func TestSocketInTheWay(t *testing.T) {
	open := func(t *testing.T, path string) error {
		s, err := New(Config{Socket: path, Verbs: VerbsOf(&fakeBackend{})})
		require.NoError(t, err)
		err = s.Open(t.Context())
		if err == nil {
			t.Cleanup(func() { s.Close() })
		}
		return err
	}
	path := func(t *testing.T) string { return filepath.Join(t.TempDir(), "admin.sock") }

	t.Run("left behind", func(t *testing.T) {
		p := path(t)
		l, err := net.Listen("unix", p)
		require.NoError(t, err)
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
		check.NoError(t, open(t, p))
	})
	t.Run("in use", func(t *testing.T) {
		p := path(t)
		require.NoError(t, open(t, p))
		if err := open(t, p); err == nil || !strings.Contains(err.Error(), "another saltclusterd") {
			t.Errorf("err = %v", err)
		}
	})
	t.Run("not a socket", func(t *testing.T) {
		p := path(t)
		require.NoError(t, os.WriteFile(p, []byte("precious"), 0o600))
		if err := open(t, p); err == nil {
			t.Error("replaced a file")
		}
		if got, _ := os.ReadFile(p); string(got) != "precious" {
			t.Errorf("the file is now %q", got)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no socket":     {Verbs: VerbsOf(&fakeBackend{})},
		"unknown group": {Socket: "/x", Verbs: VerbsOf(&fakeBackend{}), Group: "no-such-group-here"},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestSocket_InheritedGroup: an inherited socket keeps the group that the old process has configured until the new one
// serves.
func TestSocket_InheritedGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives a file to any group")
	}
	for name, group := range map[string]int{"another": 4242, "": os.Getegid()} {
		path := filepath.Join(t.TempDir(), "admin.sock")
		l, err := net.Listen("unix", path)
		require.NoError(t, err)
		require.NoError(t, os.Chown(path, -1, 4343))
		cfg := Config{Socket: path, Verbs: VerbsOf(&fakeBackend{}),
			Inherited: func(string) (*net.UnixListener, error) { return l.(*net.UnixListener), nil }}
		if name != "" {
			cfg.Group = strconv.Itoa(group)
		}
		s, err := New(cfg)
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		for _, step := range []struct {
			do   func(context.Context) error
			want int
		}{{s.Bind, 4343}, {s.Open, group}} {
			require.NoError(t, step.do(t.Context()))
			info, err := os.Stat(path)
			require.NoError(t, err)
			if got := info.Sys().(*syscall.Stat_t).Gid; int(got) != step.want {
				t.Errorf("group %d, not %d", got, step.want)
			}
		}
	}
}
