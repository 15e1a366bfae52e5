package consensus

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/hashicorp/raft"

	"saltclusterd/consensus/state"
)

// fsm is the bridge between raft's log and the state. It decides nothing.
type fsm struct {
	state *state.State
	hub   *hub
	log   *slog.Logger
	fail  func(error) // tells the node that it must stop

	applying  sync.Mutex // raft applies, or replayLog does
	preloaded bool       // until open: the state may be ahead of every snapshot; guarded by applying

	mu  sync.Mutex
	err error // first thing this version did not understand
}

// Apply implements raft.FSM. It returns [][]state.Result or an error.
func (f *fsm) Apply(l *raft.Log) any {
	f.applying.Lock()
	defer f.applying.Unlock()
	if l.Index <= f.state.View().Index() {
		return nil // replayed; no caller waits for the results of a former run
	}
	return f.applyEntry(l)
}

func (f *fsm) applyEntry(l *raft.Log) any {
	if err := f.stopError(); err != nil {
		return err
	}
	e, err := state.DecodeEntry(l.Data)
	if errors.Is(err, state.ErrUnsupported) {
		return f.latchError(fmt.Errorf("log entry %d: %w", l.Index, err))
	}
	if err != nil {
		// It is malformed on every node alike, so skipping it keeps them equal.
		f.log.Error("malformed log entry skipped", "index", l.Index, "err", err)
		e = state.Entry{}
	}
	results := f.state.Apply(l.Index, e)
	f.hub.notifyAll()
	if err != nil {
		return err
	}
	return results
}

// Snapshot implements raft.FSM; the view is immutable, so writing it out runs
// beside further Applies.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.stopError(); err != nil {
		return nil, err
	}
	return snapshot{f.state.View()}, nil
}

// Restore implements raft.FSM.
func (f *fsm) Restore(r io.ReadCloser) error {
	defer func() { _ = r.Close() }()
	s, err := state.ReadSnapshot(r)
	if errors.Is(err, state.ErrUnsupported) {
		return f.latchError(err)
	}
	if err != nil {
		return err
	}
	f.applying.Lock()
	if !f.preloaded || s.View().Index() > f.state.View().Index() {
		f.state.Replace(s)
	}
	f.applying.Unlock()
	f.hub.notifyAll()
	return nil
}

func (f *fsm) stopError() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// latchError latches err: a state that missed one entry must not take the next, nor
// be written into a snapshot.
func (f *fsm) latchError(err error) error {
	f.mu.Lock()
	if f.err == nil {
		f.err = err
	}
	f.mu.Unlock()
	f.fail(err)
	return err
}

type snapshot struct{ view state.View }

// Persist implements raft.FSMSnapshot.
func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.view.WriteSnapshot(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (snapshot) Release() {}
