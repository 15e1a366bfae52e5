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
)

// fullDisk takes nothing while it is full.
type fullDisk struct {
	raft.StableStore
	full  atomic.Bool
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
	if d.tries.Add(1); d.full.Load() {
		return errFull
	}
	return d.StableStore.SetUint64(key, val)
}

func TestRetryingStore_FullDisk(t *testing.T) {
	disk := &fullDisk{StableStore: raft.NewInmemStore()}
	disk.full.Store(true)
	var noted []error
	p := retryingStore{disk, t.Context(), slog.New(slog.DiscardHandler), func(err error) { noted = append(noted, err) }}
	done := make(chan error, 1)
	go func() { done <- p.SetUint64([]byte(currentTerm), 3) }()
	for disk.tries.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	disk.full.Store(false)
	require.NoError(t, <-done)
	if !errors.Is(noted[0], errFull) || noted[len(noted)-1] != nil {
		t.Errorf("the node says of its disk: %v", noted)
	}
	if v, err := p.GetUint64([]byte(currentTerm)); err != nil || v != 3 {
		t.Errorf("%d, %v", v, err)
	}
}

// A vote that is not stored is not given; a term that is not stored does not kill a node that closes.
func TestStableStore_CloseWhileDiskFull(t *testing.T) {
	disk := &fullDisk{StableStore: raft.NewInmemStore()}
	disk.full.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	p := retryingStore{disk, ctx, slog.New(slog.DiscardHandler), func(error) {}}
	cancel()
	if err := p.Set([]byte("LastVoteCand"), []byte("m1")); !errors.Is(err, errFull) {
		t.Errorf("the vote: %v", err)
	}
	check.NoError(t, p.SetUint64([]byte(currentTerm), 3), "the term")
}
