package daemon

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

// A member whose state_dir lacks what it cannot do without does not start, and says what is left to do.
func TestRun_StateDamaged(t *testing.T) {
	t.Parallel()
	n := startNode(t, "a", t.TempDir())
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	n.halt()
	for _, c := range []struct {
		file, says string
		gone       bool
	}{
		{file: "membership.json", says: membership.RecoveryHint},
		{file: "roster.json", says: membership.RecoveryHint},
		{file: "roster.json", gone: true, says: membership.RecoveryHint},
		{file: "pki/cluster.pem", says: membership.RecoveryHint},
		{file: "pki/cluster.pem", gone: true, says: membership.RecoveryHint},
		{file: "clock", says: "move it away"},
	} {
		path := filepath.Join(n.cfg.Paths.StateDir, c.file)
		was, err := os.ReadFile(path)
		if err == nil {
			err = os.Remove(path)
		}
		if err == nil && !c.gone {
			err = os.WriteFile(path, nil, 0o600)
		}
		require.NoError(t, err)
		d, err := New(n.cfg, "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
		require.NoError(t, err)
		err = d.Run(bounded(t), func() {})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, gone %t: %v", c.file, c.gone, err)
		}
		require.NoError(t, errors.Join(os.RemoveAll(path), os.WriteFile(path, was, 0o600)))
	}
}

// A member that got another id does what it is told, and is nobody's member then.
func TestRun_IDChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, "a", dir)
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	n.halt()
	conf, err := os.ReadFile(filepath.Join(dir, "conf"))
	require.NoError(t, err)
	write(t, filepath.Join(dir, "conf"), strings.Replace(string(conf), "id: a\n", "id: b\n", 1), 0o600)
	cfg, err := config.Load(filepath.Join(dir, "conf"))
	require.NoError(t, err)
	d, err := New(cfg, "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(t, err)
	if err := d.Run(bounded(t), func() {}); err == nil || !strings.Contains(err.Error(), "empty that directory") {
		t.Fatalf("%v", err)
	}
	require.NoError(t, os.RemoveAll(cfg.Paths.StateDir))
	if b := startNode(t, "b", dir); b.tenure.Current() != nil {
		t.Error("it is a member still")
	}
}
