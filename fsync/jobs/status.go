package jobs

import "saltclusterd/gossip/node"

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
	Busy    bool // something is on its way
	Err     string
}

// Status returns the present state.
func (s *Store) Status() Status {
	st := Status{Off: s.Off()}
	s.index.mu.Lock()
	st.Jobs, st.More = len(s.index.jobs), s.index.overflow
	s.index.mu.Unlock()
	for _, p := range s.Feed().Peers() {
		st.Peers = append(st.Peers, p.status())
	}
	return st
}

func (p *peer) status() PeerStatus {
	waiting := p.stream.len() // before busy is looked at: what is taken out meanwhile is on its way
	l := p.Status()
	st := PeerStatus{ID: l.ID, Off: l.Off, Waiting: waiting, Dirty: l.Pending, All: l.Digest, Busy: l.Busy}
	if l.Err != nil {
		st.Err = l.Err.Error()
	}
	return st
}
