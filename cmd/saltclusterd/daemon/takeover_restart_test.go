package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

// A node without a cluster is restarted as the other program, unless that refuses the configuration.
func TestUpgrade_WithoutCluster(t *testing.T) {
	n := startNode(t, "m1", t.TempDir())
	n.halt() // only its files are used
	cfg, err := config.Load(filepath.Join(n.dir, "conf"))
	require.NoError(t, err)
	d, err := New(cfg, "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	good, bad := filepath.Join(n.dir, "good"), filepath.Join(n.dir, "bad")
	broken := filepath.Join(n.dir, "broken")
	write(t, good, "#!/bin/sh\ntest ! -e "+broken+" || { echo 'line 8: no_such_option'; exit 2; }\n", 0o755)
	write(t, bad, "#!/bin/sh\necho 'line 7: no_such_option'\nexit 2\n", 0o755)
	d.SetProcess(takeover.Process{Binary: good})
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- d.Run(t.Context(), func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	say := func(string, string, ...int) {}
	if _, err := d.Upgrade(t.Context(), adminapi.UpgradeRequest{Binary: bad}, say); err == nil ||
		!strings.Contains(err.Error(), "line 7") {
		t.Errorf("a bad configuration: %v", err)
	}
	if r := d.upgrader.CheckReload(t.Context()); r.Level != health.OK {
		t.Errorf("another program's mistake: %+v", r)
	}
	write(t, broken, "", 0o600)
	if _, err := d.Upgrade(t.Context(), adminapi.UpgradeRequest{}, say); err == nil {
		t.Error("a reload with a bad configuration succeeded")
	}
	if r := d.upgrader.CheckReload(t.Context()); r.Level != health.Warn || !strings.Contains(r.Reason, "line 8") {
		t.Errorf("a reload that failed: %+v", r)
	}
	require.NoError(t, os.Remove(broken))
	o, err := d.Upgrade(t.Context(), adminapi.UpgradeRequest{}, say)
	if err != nil || o.PID == 0 {
		t.Errorf("%+v, %v", o, err)
	}
	if r, ok := errors.AsType[*takeover.RestartError](<-done); !ok || r.Binary != good {
		t.Errorf("Run ended with %v", r)
	}
}

// A process that is taking over from another one does not restart itself by a signal that was sent to both.
func TestUpgrade_WhileTakingOver(t *testing.T) {
	n := startNode(t, "m1", t.TempDir())
	n.halt()
	cfg, err := config.Load(filepath.Join(n.dir, "conf"))
	require.NoError(t, err)
	d, err := New(cfg, "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	good := filepath.Join(n.dir, "good")
	write(t, good, "#!/bin/sh\nexit 0\n", 0o755)
	d.SetProcess(takeover.Process{Binary: good, Takeover: 3})
	if _, err := d.Upgrade(t.Context(), adminapi.UpgradeRequest{}, quiet); adminapi.CodeOf(err) != adminapi.CodeBusy {
		t.Errorf("%v", err)
	}
	if len(d.upgrader.Restarts()) > 0 {
		t.Error("it will be restarted when its membership ends")
	}
}
