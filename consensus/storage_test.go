package consensus

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"saltclusterd/integration/require"
)

func TestOpen_LaterVersion(t *testing.T) {
	c := newCluster(t, nil)
	dir := filepath.Join(c.dirs, "m1")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, formatFile), []byte("saltclusterd consensus 2\n"), 0o644))
	n, err := New(Config{ID: "m1", Dir: dir, Port: fabricPort{c.f, "m1"}, Forward: c.f.forward("m1"),
		Stats: c.f.stats("m1")})
	require.NoError(t, err)
	if err := n.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "upgrade saltclusterd") {
		t.Errorf("open: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, logFile)); err == nil {
		t.Error("a log was made in it")
	}
}

func TestOpenRefusesADamagedLog(t *testing.T) {
	c := form(t, 1, nil)
	c.stop("m1")
	path := filepath.Join(c.dirs, "m1", logFile)
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("damage"), 4096), 0o600))
	n, err := New(Config{ID: "m1", Dir: filepath.Dir(path), Port: fabricPort{c.f, "m1"}, Forward: c.f.forward("m1"),
		Stats: c.f.stats("m1")})
	require.NoError(t, err)
	if err := n.Open(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("open: %v", err)
	}
}

func TestRaftLogsGoToSlog(t *testing.T) {
	var out bytes.Buffer
	var l hclog.Logger = hcLogger{log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))}
	l = l.Named("a").Named("b").With("peer", "m2")
	l.Info("connection opened")
	l.Warn("no quorum", "need", hclog.Fmt("%d", 2))
	l.StandardLogger(nil).Print("quiet")
	got := out.String()
	if strings.Contains(got, "opened") || strings.Contains(got, "quiet") ||
		!strings.Contains(got, `level=WARN msg="raft: no quorum" peer=m2 need=`) {
		t.Errorf("%s", got)
	}
	if l.Name() != "a.b" || l.IsDebug() || l.IsInfo() || !l.IsWarn() || !l.IsError() || l.IsTrace() ||
		l.GetLevel() != hclog.Warn || len(l.ImpliedArgs()) != 2 {
		t.Errorf("%s %v %v", l.Name(), l.GetLevel(), l.ImpliedArgs())
	}
}
