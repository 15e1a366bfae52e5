package consensus

import (
	"context"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
)

// currentTerm is raft's key.
const currentTerm = "CurrentTerm"

// storePause is how long a vote that the disk did not take waits for the next try.
const storePause = 500 * time.Millisecond

// retryingStore keeps raft from dying of a full disk: it panics when a term cannot be stored. A node that has to wait
// for its disk is like one that does not answer: the others continue without it, and it has promised nothing.
type retryingStore struct {
	raft.StableStore
	ctx     context.Context // ends with the node
	log     *slog.Logger
	watched *diskWrite
}

// Set implements raft.StableStore.
func (p retryingStore) Set(key, val []byte) error {
	return p.retryWrite(func() error { return p.StableStore.Set(key, val) })
}

// SetUint64 implements raft.StableStore. A node that closes has given its last vote, so that the term does not matter
// any more.
func (p retryingStore) SetUint64(key []byte, val uint64) error {
	err := p.retryWrite(func() error { return p.StableStore.SetUint64(key, val) })
	if err != nil && string(key) == currentTerm {
		return nil
	}
	return err
}

// retryWrite repeats store until the disk takes it or the node closes.
func (p retryingStore) retryWrite(store func() error) error {
	for {
		err := p.watched.watch(store)
		if err == nil || p.ctx.Err() != nil {
			return err
		}
		p.log.Error("term or vote not stored: this node does not take part until it can write to the disk", "err", err)
		select {
		case <-time.After(storePause):
		case <-p.ctx.Done():
		}
	}
}
