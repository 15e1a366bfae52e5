package consensus

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// This file changes the log of a node that does not run, because no majority is left to agree on anything.

// lockWait is how long another process may hold the log.
const lockWait = 3 * time.Second

// Recover makes the node whose directory this is the only member of its cluster. Everything its log holds counts as
// decided, also what no majority may have had. A crash on the way leaves the log as it was, or recovered.
func Recover(dir string, r state.Recovery, logger *slog.Logger) (state.View, error) {
	hlog := hcLogger{log: logger}
	store, err := openStorage(dir, lockWait, hlog)
	if err != nil {
		return state.View{}, fmt.Errorf("recover: %w", err)
	}
	f := &recovering{
		fsm:      &fsm{state: state.New(), hub: newHub(), log: logger, fail: func(error) {}},
		recovery: r,
	}
	id := r.Survivor.ID
	err = raft.RecoverCluster(offlineConfig(id, hlog), f, store.logs, store.bolt, store.snaps, inertTransport(id),
		soleVoter(id))
	if err = errors.Join(err, f.stopError(), store.close()); err != nil {
		return state.View{}, fmt.Errorf("recover: %w", err)
	}
	return f.state.View(), nil
}

// recovering is the state machine of a recovery: the state changes when the log is read and before it is written anew.
type recovering struct {
	*fsm
	recovery state.Recovery
}

// Snapshot implements raft.FSM.
func (f *recovering) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.stopError(); err != nil {
		return nil, err
	}
	if err := f.state.Recover(f.recovery); err != nil {
		return nil, err
	}
	return f.fsm.Snapshot()
}

// Restore makes a log out of a state, in a directory without one, with r.Survivor as the only member.
func Restore(dir string, s *state.State, r state.Recovery, logger *slog.Logger) error {
	if err := s.Recover(r); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	hlog := hcLogger{log: logger}
	store, err := openStorage(dir, lockWait, hlog)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := errors.Join(store.writeFirstSnapshot(s.View(), r.Survivor.ID), store.close()); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}

// writeFirstSnapshot writes a view as the snapshot that the node starts from.
func (s *storage) writeFirstSnapshot(v state.View, id node.ID) error {
	switch used, err := raft.HasExistingState(s.logs, s.bolt, s.snaps); {
	case err != nil:
		return err
	case used:
		return ErrBootstrapped
	}
	const term = 1
	if err := s.bolt.SetUint64([]byte(currentTerm), term); err != nil {
		return err
	}
	sink, err := s.snaps.Create(raft.SnapshotVersionMax, v.Index(), term, soleVoter(id), 1, inertTransport(id))
	if err != nil {
		return err
	}
	return snapshot{v}.Persist(sink)
}

// soleVoter is a configuration of one voter.
func soleVoter(id node.ID) raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: raft.ServerID(id), Address: addrOf(id)}}}
}

func offlineConfig(id node.ID, hlog hcLogger) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID, c.Logger, c.NoLegacyTelemetry = raft.ServerID(id), hlog, true
	return c
}

// inertTransport is a transport that only knows how to write an address down.
func inertTransport(id node.ID) raft.Transport {
	_, t := raft.NewInmemTransport(addrOf(id))
	return t
}
