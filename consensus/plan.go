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
	lost      map[node.ID]bool // dead for so long that a stand-by may take the vote
	alive     func(node.ID) bool
	maxVoters int
}

// decideChange returns the next single change of the configuration. One change at a time, each committed before the
// next, and none that takes a vote from the living when the rest would be no majority: we never cost the cluster its
// quorum.
func decideChange(s situation) action {
	if len(s.roster) == 0 {
		return action{} // not born yet
	}
	wanted := make(map[node.ID]state.Member, len(s.roster))
	for _, m := range s.roster {
		wanted[m.ID] = m
	}
	if m, ok := wanted[s.self]; !ok || m.NonVoter {
		if id, ok := s.findSuccessor(); ok {
			return action{moveTransfer, id}
		}
		// No member to hand over to yet: continue, so that one gets a vote.
	}
	for _, rule := range []func(situation, map[node.ID]state.Member) (action, bool){
		removeUnlisted, demoteNonVoter, addLearner, promoteReserve, replaceVoter, witnessLeads,
	} {
		if a, ok := rule(s, wanted); ok {
			return a
		}
	}
	return action{}
}

// removeUnlisted removes a server that is off the roster: learners first, then dead voters, then living ones.
func removeUnlisted(s situation, wanted map[node.ID]state.Member) (action, bool) {
	best, rank := node.ID(""), 3
	for _, sv := range s.servers {
		if _, ok := wanted[sv.id]; ok || sv.id == s.self || sv.voter && !s.canLose(sv.id) {
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
	return action{moveRemove, best}, rank < 3
}

// demoteNonVoter demotes a voter that the roster gives no vote.
func demoteNonVoter(s situation, wanted map[node.ID]state.Member) (action, bool) {
	for _, sv := range s.servers {
		if sv.voter && wanted[sv.id].NonVoter && sv.id != s.self && s.canLose(sv.id) {
			return action{moveDemote, sv.id}, true
		}
	}
	return action{}, false
}

// addLearner takes a member in that raft does not know.
func addLearner(s situation, _ map[node.ID]state.Member) (action, bool) {
	for _, m := range s.roster {
		if !s.isConfigured(m.ID) {
			return action{moveLearn, m.ID}, true
		}
	}
	return action{}, false
}

// promoteReserve gives a free vote to a member in reserve.
func promoteReserve(s situation, _ map[node.ID]state.Member) (action, bool) {
	if s.countVoters() >= s.maxVoters {
		return action{}, false
	}
	if id, ok := s.findReserve(); ok {
		return action{movePromote, id}, true
	}
	return action{}, false
}

// replaceVoter takes the vote from a voter that is lost when one in reserve can have it, and from whoever is too many.
// Without a reserve the lost one keeps its vote: shrinking the cluster unasked would let the last node decide alone.
func replaceVoter(s situation, _ map[node.ID]state.Member) (action, bool) {
	_, reserve := s.findReserve()
	over := s.countVoters() > s.maxVoters
	var last action
	for _, m := range s.roster {
		if !s.isVoter(m.ID) || m.ID == s.self || !s.canLose(m.ID) {
			continue
		}
		if s.lost[m.ID] && !s.alive(m.ID) && (reserve || over) {
			return action{moveDemote, m.ID}, true
		}
		if over {
			last = action{moveDemote, m.ID}
		}
	}
	return last, last.move != moveNone
}

// witnessLeads hands the leadership to a node with a salt-master: it knows sooner what minions need.
func witnessLeads(s situation, wanted map[node.ID]state.Member) (action, bool) {
	if !wanted[s.self].Witness {
		return action{}, false
	}
	id, ok := s.findSuccessor()
	return action{moveTransfer, id}, ok && !wanted[id].Witness
}

// findReserve finds a member that may vote, does not, and could at once.
func (s situation) findReserve() (node.ID, bool) {
	for _, m := range s.roster {
		if s.ready[m.ID] && !m.NonVoter && s.isConfigured(m.ID) && !s.isVoter(m.ID) {
			return m.ID, true
		}
	}
	return "", false
}

// findSuccessor finds a voter who may lead: on the roster, alive, not us; a witness only if no other is left.
func (s situation) findSuccessor() (successor node.ID, ok bool) {
	for _, m := range s.roster {
		switch {
		case m.ID == s.self || m.NonVoter || !s.isVoter(m.ID) || !s.alive(m.ID):
		case !m.Witness:
			return m.ID, true
		case !ok:
			successor, ok = m.ID, true
		}
	}
	return successor, ok
}

// canLose says whether the living voters are a majority also when id has no vote.
func (s situation) canLose(id node.ID) bool {
	voters, living := 0, 0
	for _, sv := range s.servers {
		if !sv.voter || sv.id == id {
			continue
		}
		voters++
		if sv.id == s.self || s.alive(sv.id) {
			living++
		}
	}
	return voters > 0 && living >= voters/2+1
}

func (s situation) countVoters() int {
	n := 0
	for _, sv := range s.servers {
		if sv.voter {
			n++
		}
	}
	return n
}

func (s situation) isConfigured(id node.ID) bool {
	for _, sv := range s.servers {
		if sv.id == id {
			return true
		}
	}
	return false
}

func (s situation) isVoter(id node.ID) bool {
	for _, sv := range s.servers {
		if sv.id == id {
			return sv.voter
		}
	}
	return false
}
