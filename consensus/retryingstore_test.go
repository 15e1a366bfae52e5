package consensus

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/integration/require"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
)

// fullDisk takes nothing while it is full.
type fullDisk struct {
	raft.StableStore
	full  atomic.Bool
	stuck chan struct{} // it does not answer before this is closed; nil: it does
	tries atomic.Int32
}

var errFull = errors.New("no space left on device")

func (d *fullDisk) Set(key, val []byte) error {
	if d.tries.Add(1); d.full.Load() {
		return errFull
	}
	return d.StableStore.Set(key, val)
}

func (d *fullDisk) SetUint64(key []byte, val uint64) error {
	if d.stuck != nil {
		<-d.stuck
	}
	if d.tries.Add(1); d.full.Load() {
		return errFull
	}
	return d.StableStore.SetUint64(key, val)
}

func TestRetryingStore_FullDisk(t *testing.T) {
	disk := &fullDisk{StableStore: raft.NewInmemStore()}
	disk.full.Store(true)
	w := &watchedLog{}
	p := retryingStore{disk, t.Context(), slog.New(slog.DiscardHandler), &w.votes}
	done := make(chan error, 1)
	go func() { done <- p.SetUint64([]byte(currentTerm), 3) }()
	for disk.tries.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	if err := w.failure(); !errors.Is(err, errFull) {
		t.Errorf("the node says of its full disk: %v", err)
	}
	disk.full.Store(false)
	require.NoError(t, <-done)
	check.NoError(t, w.failure(), "there is room again")
	if v, err := p.GetUint64([]byte(currentTerm)); err != nil || v != 3 {
		t.Errorf("%d, %v", v, err)
	}
}

// A disk that does not answer when it is given a vote or a term is one that hangs. When it takes that, entries which it
// did not take, or has not taken yet, are still what the node tells of.
func TestRetryingStore_HangingDisk(t *testing.T) {
	disk := &fullDisk{StableStore: raft.NewInmemStore(), stuck: make(chan struct{})}
	w := &watchedLog{}
	_ = w.entries.watch(func() error { return errFull })
	p := retryingStore{disk, t.Context(), slog.New(slog.DiscardHandler), &w.votes}
	done := make(chan error, 1)
	go func() { done <- p.SetUint64([]byte(currentTerm), 3) }()
	patience.WaitFor(t, "the disk hangs", w.hangs)
	close(disk.stuck)
	require.NoError(t, <-done)
	if err := w.failure(); w.hangs() || !errors.Is(err, errFull) {
		t.Errorf("hangs: %t, entries were not stored, the node says: %v", w.hangs(), err)
	}
	_ = w.entries.watch(func() error {
		check.NoError(t, p.SetUint64([]byte(currentTerm), 4))
		if !w.hangs() {
			t.Error("a term was stored, and the node forgot that it stores entries")
		}
		return nil
	})
	check.NoError(t, w.failure(), "all is stored")
}

// A vote that is not stored is not given; a term that is not stored does not kill a node that closes.
func TestStableStore_CloseWhileDiskFull(t *testing.T) {
	disk := &fullDisk{StableStore: raft.NewInmemStore()}
	disk.full.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	p := retryingStore{disk, ctx, slog.New(slog.DiscardHandler), &diskWrite{}}
	cancel()
	if err := p.Set([]byte("LastVoteCand"), []byte("m1")); !errors.Is(err, errFull) {
		t.Errorf("the vote: %v", err)
	}
	check.NoError(t, p.SetUint64([]byte(currentTerm), 3), "the term")
}
