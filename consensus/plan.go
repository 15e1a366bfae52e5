package consensus

import (
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// step kinds of the leader, in the order of their urgency.
type move string

const (
	moveNone     move = ""
	moveTransfer move = "transfer" // hand the leadership to ID
	moveRemove   move = "remove"   // take ID out of the configuration
	moveDemote   move = "demote"   // make the voter ID a learner
	moveLearn    move = "learn"    // take ID in as a learner
	movePromote  move = "promote"  // make the learner ID a voter
)

type action struct {
	move move
	id   node.ID
}

// server is one line of raft's configuration.
type server struct {
	id    node.ID
	voter bool
}

// situation is all that decides what a leader does next.
type situation struct {
	self      node.ID
	roster    []state.Member // sorted by id
	servers   []server       // in any order
	ready     map[node.ID]bool
	alive     func(node.ID) bool
	maxVoters int
}

// decide returns the next single change of the configuration. One change at a
// time, each committed before the next, cannot cost the majority.
func decide(s situation) action {
	if len(s.roster) == 0 {
		return action{} // not born yet
	}
	wanted := make(map[node.ID]state.Member, len(s.roster))
	for _, m := range s.roster {
		wanted[m.ID] = m
	}
	present := make(map[node.ID]bool, len(s.servers))
	voters := 0
	for _, sv := range s.servers {
		present[sv.id] = true
		if sv.voter {
			voters++
		}
	}
	if m, ok := wanted[s.self]; !ok || m.NonVoter {
		if id, ok := s.heir(wanted); ok {
			return action{moveTransfer, id}
		}
		// Nobody to hand over to yet: go on, so that somebody gets a vote.
	}
	if id, ok := s.stranger(wanted); ok {
		return action{moveRemove, id}
	}
	for _, sv := range s.servers {
		if sv.voter && wanted[sv.id].NonVoter && sv.id != s.self && voters > 1 {
			return action{moveDemote, sv.id}
		}
	}
	for _, m := range s.roster {
		if !present[m.ID] {
			return action{moveLearn, m.ID}
		}
	}
	for _, m := range s.roster {
		if s.ready[m.ID] && !m.NonVoter && !s.votes(m.ID) && voters < s.maxVoters {
			return action{movePromote, m.ID}
		}
	}
	return action{}
}

func (s situation) votes(id node.ID) bool {
	for _, sv := range s.servers {
		if sv.id == id {
			return sv.voter
		}
	}
	return false
}

// heir finds a voter who may lead: on the roster, alive, not us.
func (s situation) heir(wanted map[node.ID]state.Member) (node.ID, bool) {
	for _, m := range s.roster {
		if m.ID != s.self && !m.NonVoter && s.votes(m.ID) && s.alive(m.ID) {
			return m.ID, true
		}
	}
	return "", false
}

// stranger finds a server that is off the roster: learners first, then dead
// voters, then living ones.
func (s situation) stranger(wanted map[node.ID]state.Member) (node.ID, bool) {
	best, rank := node.ID(""), 3
	for _, sv := range s.servers {
		if _, ok := wanted[sv.id]; ok || sv.id == s.self {
			continue
		}
		r := 0
		if sv.voter {
			r = 1
			if s.alive(sv.id) {
				r = 2
			}
		}
		if r < rank || (r == rank && sv.id < best) {
			best, rank = sv.id, r
		}
	}
	return best, rank < 3
}
