package consensus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/require"
)

// smallDisk gives a node a file system of its own. The test needs root and a mount namespace: unshare -m go test …
func smallDisk(t *testing.T, cfg *Config) {
	require.NoError(t, os.MkdirAll(cfg.Dir, 0o700))
	if err := syscall.Mount("tmpfs", cfg.Dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("no file system of its own: %v", err)
	}
	dir := cfg.Dir
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// fill takes what is left of a node's disk; the returned function gives it back.
func fill(t *testing.T, dir string) (free func()) {
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	require.NoError(t, err)
	for b := make([]byte, 4096); err == nil; {
		_, err = f.Write(b)
	}
	_ = f.Close()
	return func() { _ = os.Remove(path) }
}

// TestFullDisk deletes a key while a follower cannot store entries: that node knows that it is behind, says so to whom
// asks for a barrier, and is up to date soon after there is room.
func TestFullDisk(t *testing.T) {
	c := form(t, 3, func(cfg *Config) {
		if cfg.ID == "m3" {
			smallDisk(t, cfg)
		}
	})
	m3 := c.nodes["m3"]
	l := c.leader("m1", "m2", "m3")
	if l == m3 {
		_ = l.TransferLeadership(t.Context(), "m1")
		l = c.leader("m1", "m2")
	}
	r := c.must(l, accept("evil"))
	c.converge()
	free := fill(t, m3.cfg.Dir)
	for i := 0; m3.LogError() == nil && i < 2000; i++ { // the log's own free pages
		c.must(l, accept(fmt.Sprint("fill", i)))
	}
	c.must(l, state.KeySet{ID: "evil", State: state.KeyDeleted, BaseRev: r[0].Rev})
	c.eventually("the node knows that it is behind", func() (bool, string) {
		s := m3.Status()
		return s.Behind > 0 && m3.LogError() != nil, fmt.Sprintf("%+v, log: %v", s, m3.LogError())
	})
	if k, ok := m3.View().Key("evil"); !ok || k.State != state.KeyAccepted {
		t.Fatal("the node stored the deletion: its disk is not full")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := m3.Barrier(ctx); !errors.Is(err, ErrBehind) || errors.Is(err, ErrNoLeader) {
		t.Errorf("barrier: %v", err)
	}
	free()
	c.eventually("the deletion is here", func() (bool, string) {
		k, ok := m3.View().Key("evil")
		return (!ok || k.State == state.KeyDeleted) && m3.Behind() == 0 &&
			m3.LogError() == nil, fmt.Sprintf("%+v", m3.Status())
	})
}
