package daemon

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// A member whose state_dir lacks what it cannot do without does not start, and says what is left to do.
func TestDamagedStateSaysWhatToDo(t *testing.T) {
	t.Parallel()
	n := startNode(t, "a", t.TempDir())
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: time.Minute}, quiet); err != nil {
		t.Fatal(err)
	}
	n.halt()
	for _, c := range []struct {
		file, says string
		gone       bool
	}{
		{file: "membership.json", says: startAnew},
		{file: "roster.json", says: startAnew},
		{file: "roster.json", gone: true, says: startAnew},
		{file: "pki/cluster.pem", says: startAnew},
		{file: "pki/cluster.pem", gone: true, says: startAnew},
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
		if err != nil {
			t.Fatal(err)
		}
		d, err := New(n.cfg, "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
		if err != nil {
			t.Fatal(err)
		}
		err = d.Run(minute(t), func() {})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, gone %t: %v", c.file, c.gone, err)
		}
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, was, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
