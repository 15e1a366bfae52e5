package mines_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/mines"
	"saltclusterd/sidecar/saltwire"
)

// turns lets nobody change a mine before it is closed.
type turns struct {
	open    chan struct{}
	waiting atomic.Int64
	changed atomic.Int64
}

func (s *turns) Change(_ context.Context, _ string, edit func([]byte) ([]byte, bool, error), _ time.Duration) error {
	s.waiting.Add(1)
	<-s.open
	_, write, err := edit(nil)
	if write && err == nil {
		s.changed.Add(1)
	}
	return err
}

// TestAnswer_MemoryWhileWaiting: a load of many small entries takes ten times its size when it is taken
// apart, and one minion may have many that wait for each other.
func TestAnswer_MemoryWhileWaiting(t *testing.T) {
	const requests = 30
	store := &turns{open: make(chan struct{})}
	s, err := mines.New(mines.Config{Store: store, Keys: everybody, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	c := options(t, "", 3008)
	set, reason := mines.Native(c, 3008)
	if set == nil {
		t.Fatal(reason)
	}
	s.Use(set, "")
	load := appendAny(t, nil, load("_mine", "m1", "data", mineOf(20_000, 1)), saltwire.Wire)
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // what the first one finds in pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	var wg sync.WaitGroup
	for range requests {
		wg.Go(func() {
			check.NoError(t, s.Answer(t.Context(), "_mine", "m1", load, func([]byte) {}))
		})
	}
	for end := time.Now().Add(time.Minute); store.waiting.Load() < requests; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(fmt.Sprint(store.waiting.Load(), " wait"))
		}
	}
	if took := heap() - before; took > requests*int64(len(load)) {
		t.Errorf("%d loads of %d bytes take %d more each", requests, len(load), took/requests)
	}
	close(store.open)
	wg.Wait()
	if n := store.changed.Load(); n != requests {
		t.Errorf("%d of %d changed the mine", n, requests)
	}
}
