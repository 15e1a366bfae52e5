package consensus

import (
	"fmt"
	"io"

	"saltclusterd/consensus/state"
)

// Preload gives a node that is not open yet the state which the process before it had reached, as a snapshot
// (state.View.WriteSnapshot). Open then adds what the log has beyond that and does not go back to an older snapshot.
func (n *Node) Preload(r io.Reader) error {
	s, err := state.ReadSnapshot(r)
	if err != nil {
		return fmt.Errorf("preload consensus: %w", err)
	}
	n.fsm.applying.Lock()
	defer n.fsm.applying.Unlock()
	if n.raft.Load() != nil || s.View().Index() < n.state.View().Index() {
		return fmt.Errorf("preload consensus: %w", ErrClosed)
	}
	n.state.Replace(s)
	n.fsm.preloaded = true
	n.hub.notifyAll()
	return nil
}

// endPreload ends what Preload began: a snapshot that comes now is a leader's word.
func (f *fsm) endPreload() {
	f.applying.Lock()
	defer f.applying.Unlock()
	f.preloaded = false
}
