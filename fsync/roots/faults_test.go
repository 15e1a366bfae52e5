package roots

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
)

// noise is content that cannot be packed.
func noise(seed byte, n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{seed})
	_, _ = r.Read(b)
	return string(b)
}

// limited ends after some bytes, as a connection that breaks.
type limited struct {
	io.ReadCloser
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("connection reset")
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

func TestFetch_ResumeAfterBrokenConnection(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	size := 0
	for i := range 12 {
		a.write(fmt.Sprintf("f%d", i), noise(byte(i), 3<<20))
		size += 3 << 20
	}
	w.await("the first revision", func() bool { return a.store.Status().Stable(12) })
	var got atomic.Int64
	w.spoil = func(_, _ node.ID, r io.ReadCloser) (io.ReadCloser, error) {
		return &limited{&counting{r, &got}, 5 << 20}, nil
	}
	b := w.start("b")
	w.await("b has all", func() bool { return b.store.Status().Stable(12) })
	w.awaitEqual()
	if n := got.Load(); n > int64(size)*17/10 {
		t.Errorf("%d MiB were read for %d", n>>20, size>>20)
	}
}

type counting struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func TestFetch_CorruptPeer(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	a.write("f", noise(1, 300<<10))
	w.await("b has it", func() bool { return b.store.Status().Stable(1) })
	w.awaitEqual()
	w.mu.Lock()
	w.spoil = func(from, _ node.ID, r io.ReadCloser) (io.ReadCloser, error) {
		if from != "a" {
			return r, nil
		}
		defer r.Close()
		raw, err := io.ReadAll(r)
		if len(raw) > 100 {
			raw[len(raw)/2] ^= 1
		}
		return io.NopCloser(bytes.NewReader(raw)), err
	}
	w.mu.Unlock()
	c := w.start("c")
	w.await("c has it from b", func() bool { return c.store.Status().Stable(1) })
	w.awaitEqual()
}

func TestRollback(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	a.write("f", "one")
	a.write("gone", noise(2, 2<<20))
	w.await("b has it", func() bool { return b.store.Status().Stable(2) && a.store.Status().Stable(2) })
	first := b.store.Status().Base
	a.write("f", "two") // a itself does not have the old content any more
	a.remove("gone")
	a.write("new", "x")
	w.await("b has the edit", func() bool { return b.has("new", "x") && b.has("f", "two") && b.lacks("gone") })
	w.awaitEqual()
	b.close()
	b.open() // what it has displaced outlives it
	w.awaitEqual()
	rev, err := a.store.Rollback(t.Context(), first)
	if err != nil || rev.Kind != KindRollback {
		t.Fatalf("%+v, %v", rev, err)
	}
	w.await("all have the old tree", func() bool { return a.has("f", "one") && b.has("f", "one") && a.lacks("new") })
	w.awaitEqual()
	if !a.has("gone", noise(2, 2<<20)) {
		t.Error("the removed file is not back")
	}
	if _, err := a.store.Rollback(t.Context(), 4711); !errors.Is(err, ErrNoRevision) {
		t.Errorf("an unknown revision: %v", err)
	}
}

// TestKilledInTheMiddle stops a node at each step of a switch, as kill -9 would, and starts it again.
func TestKilledInTheMiddle(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	a.write("stays", "1")
	a.write("changes", "old")
	a.write("goes/away", "1")
	a.write("turns", "a file")
	w.await("b has it", func() bool { return b.store.Status().Stable(4) })
	w.awaitEqual()
	b.close()
	a.write("changes", "new")
	a.remove("goes")
	a.remove("turns")
	a.write("turns/into/a/directory", "1")
	a.write("comes", "1")
	if _, err := a.store.Sync(t.Context(), SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	kills := 0
	for limit := 0; ; limit++ {
		store, err := New(b.cfg)
		require.NoError(t, err)
		var steps, killed atomic.Int64
		store.hooks.step = func() error {
			if steps.Add(1) > int64(limit) {
				killed.Store(1)
				return errors.New("killed")
			}
			return nil
		}
		b.openStore(store)
		w.await("b is killed, or done", func() bool { return killed.Load() == 1 || b.store.Status().Stable(4) })
		done := killed.Load() == 0
		b.close()
		if done {
			break
		}
		if kills++; kills > 100 {
			t.Fatal("it never ends")
		}
	}
	if kills < 5 {
		t.Errorf("only %d steps", kills)
	}
	b.open()
	w.awaitEqual()
	if head, _ := (nodeLog{a}).Head(); head.Author != "a" {
		t.Errorf("half of a switch was proposed: %+v", head)
	}
}

func TestArea_FallbackInsideSlot(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	a.write("f", "1")
	w.await("the first revision", func() bool { return a.store.Status().Stable(1) })
	b := w.node("b")
	blocked := filepath.Join(b.state, "slots", "file:base:0")
	require.NoError(t, os.MkdirAll(filepath.Dir(blocked), 0o700))
	require.NoError(t, os.WriteFile(blocked, nil, 0o600)) // no area outside: the slot has one inside
	b.open()
	w.await("b has it", func() bool { return b.store.Status().Stable(1) })
	w.awaitEqual()
	if _, err := os.Stat(filepath.Join(b.dirs[fileBase], ".saltcluster-area")); err != nil {
		t.Error(err)
	}
}
