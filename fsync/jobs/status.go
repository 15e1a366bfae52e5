package jobs

import (
	"maps"
	"slices"

	"saltclusterd/gossip/node"
)

// Status is what an operator may want to know.
type Status struct {
	Off   string // why no jobs are replicated; empty when they are
	Jobs  int    // known here
	More  int    // jobs found beyond those that can be known
	Peers []PeerStatus
}

// PeerStatus tells how far another member is behind.
type PeerStatus struct {
	ID      node.ID
	Off     bool // it keeps no jobs of others
	Waiting int  // returns and files to send
	Dirty   int  // jobs to compare
	All     bool // all jobs are to be compared
	Err     string
}

// Status returns the present state.
func (s *Store) Status() Status {
	st := Status{Off: s.cfg.Off}
	s.index.mu.Lock()
	st.Jobs, st.More = len(s.index.jobs), s.index.overflow
	s.index.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.peers)) {
		st.Peers = append(st.Peers, s.peers[id].status())
	}
	return st
}

func (p *peer) status() PeerStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := PeerStatus{ID: p.id, Off: p.off, Waiting: len(p.queue), Dirty: len(p.dirty), All: p.all}
	if p.err != nil {
		st.Err = p.err.Error()
	}
	return st
}
