package state

import (
	"errors"
	"slices"

	"saltclusterd/gossip/node"
)

// Recovery makes a cluster of one node out of a state whose majority is gone.
// It is not a command: no majority is there to agree on it. The operator decides,
// and the generation tells the nodes that are left behind. They know the session
// seed, which is therefore due to be replaced (View.SeedDue). Join tokens that no
// node has used, as far as this state knows, are dropped: the cluster may have
// used or revoked them after this state was saved, or on the side that is gone.
type Recovery struct {
	Survivor  Member // ID, Addr, Fingerprint, Weight count
	GossipKey Secret // a new one; the others keep the old
	Audit
}

// Recover applies r at the log position the state is at. Keys, secrets and the
// cluster's names stay, and which node has used which token.
func (s *State) Recover(r Recovery) error {
	if err := errors.Join(validMember(r.Survivor), validGossipKey(r.GossipKey), r.Audit.validate()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.cur.Load().clone()
	switch {
	case !d.isInitialized():
		return errors.New("there is no cluster in this state")
	case r.Survivor.Witness || d.members[r.Survivor.ID].Witness:
		return errors.New("a witness cannot continue a cluster")
	}
	rev := d.nextRevision()
	m := r.Survivor
	m.NonVoter, m.Draining = false, false
	m.JoinedRev, m.Rev, m.Audit = rev, rev, r.Audit
	d.members = map[node.ID]Member{m.ID: m}
	d.gossip = []GossipKey{{N: d.gossip[0].N + 1, Key: r.GossipKey, Rev: rev, Audit: r.Audit}}
	d.tokens = slices.DeleteFunc(slices.Clone(d.tokens), func(t JoinToken) bool { return t.Used.By == "" })
	d.removedRev = rev
	d.generation++
	s.cur.Store(d)
	return nil
}
