package consensus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/backoff"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// Raft starts with its last snapshot and applies nothing further until a leader tells what is committed. A node that
// restarts while the others are away would then know less than it did before, perhaps nothing. What a node has applied
// was committed, so it stores how far it was and applies that much of its own log again at the start.

const (
	appliedKey   = "saltcluster_applied"
	appliedEvery = time.Second // what it lags behind is only known later, from a leader
)

func (s *storage) appliedIndex() (uint64, error) {
	index, err := s.bolt.GetUint64([]byte(appliedKey))
	if errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return 0, nil
	}
	return index, err
}

func (s *storage) setApplied(index uint64) error { return s.bolt.SetUint64([]byte(appliedKey), index) }

// keepApplied stores how far this node is, now and then.
func (n *Node) keepApplied(ctx context.Context) {
	tick := time.NewTimer(backoff.Align(appliedEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Reset(backoff.Align(appliedEvery))
			n.storeApplied()
		}
	}
}

// storeApplied is keepApplied's, and Close's when that has ended.
func (n *Node) storeApplied() {
	index := n.View().Index()
	if index <= n.appliedStored.Load() {
		return
	}
	if err := n.store.setApplied(index); err != nil {
		n.log.Warn("applied index not stored", "index", index, "err", err)
		return
	}
	n.appliedStored.Store(index)
}

// restoreState brings the state to where it was when the node ended.
func (n *Node) restoreState() error {
	index, err := n.store.appliedIndex()
	if err != nil {
		return fmt.Errorf("read applied index: %w", err)
	}
	n.appliedStored.Store(index)
	first, err1 := n.store.logs.FirstIndex()
	last, err2 := n.store.logs.LastIndex()
	snaps, err3 := n.store.snaps.List()
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	base := uint64(0)
	if len(snaps) > 0 {
		base = snaps[0].Index
	}
	if first > base+1 {
		return nil // something is missing in between
	}
	return n.fsm.replayLog(n.store.logs, first, min(index, last))
}

// replayLog applies the commands of the log from first to last that the state does not have yet.
func (f *fsm) replayLog(logs raft.LogStore, first, last uint64) error {
	f.applying.Lock()
	defer f.applying.Unlock()
	for i := max(first, f.state.View().Index()+1); i <= last; i++ {
		var l raft.Log
		if err := logs.GetLog(i, &l); err != nil {
			return fmt.Errorf("read log entry %d: %w", i, err)
		}
		if l.Type != raft.LogCommand {
			continue
		}
		f.applyEntry(&l) // a command this version does not know ends the node
		if err := f.stopError(); err != nil {
			return err
		}
	}
	return nil
}
