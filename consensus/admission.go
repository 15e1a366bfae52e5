package consensus

import (
	"slices"

	"github.com/hashicorp/raft"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// A removal has two steps: the roster's, after which no member speaks to the node, and raft's, which takes its vote. In
// between it counts as a voter and agrees to nothing. One such voter is what a cluster bears; several, removed
// together, would be its majority, which the second step needs. So the leader lets the next removal into the log when
// the vote of the one before is gone.
//
// In between raft also sends it the log, where a connection is still open. Secrets that are new because a node was
// removed wait until it gets nothing of them: whoever asks for one, and in whatever order, a removal is never older
// than a secret that the removed node has received.

// admitRequest says why a request is not put into the log now: with the results that its sender gets, or as a failure
// of this attempt. ahead are the requests before it in the same batch.
func (n *Node) admitRequest(r *raft.Raft, req state.Request, ahead []state.Request) ([]state.Result, *attemptError) {
	v := n.View()
	strikes := func(q state.Request) bool {
		return slices.ContainsFunc(q.Commands, func(c state.Command) bool {
			remove, ok := c.(state.MemberRemove)
			return ok && onRoster(v, remove.ID) // who is off already may be this request's own first attempt
		})
	}
	striking, telling := strikes(req), slices.ContainsFunc(req.Commands, carriesSecret)
	if !striking && !telling {
		return nil, nil
	}
	if !n.Serving() { // what leaders before this one have removed may not be known yet
		return nil, &attemptError{err: ErrNoLeader}
	}
	servers, learners := readServers(r)
	if telling {
		servers = slices.Concat(servers, learners)
	}
	stranger := slices.IndexFunc(servers, func(id node.ID) bool { return !onRoster(v, id) })
	if stranger < 0 && !slices.ContainsFunc(ahead, strikes) && !(striking && telling) {
		return nil, nil
	}
	who := "another node"
	if stranger >= 0 {
		who = string(servers[stranger])
	}
	why := "still has its vote: remove one node at a time"
	if telling {
		why = "would still receive it: try again when saltclusterctl members no longer lists it"
	}
	refused := make([]state.Result, len(req.Commands))
	for i := range refused {
		refused[i] = state.Result{Code: state.Conflict, Message: who + " is being removed and " + why}
	}
	return refused, nil
}

// carriesSecret says whether a command carries a secret that a removed node must not receive. Not among them is an AES
// key alone, which is urgent when the key of a minion was taken away: the session seed brings another one
// (state.View.SeedDue).
func carriesSecret(c state.Command) bool {
	switch c.(type) {
	case state.SeedRotate, state.GossipKeyAdd, state.IdentityStage:
		return true
	}
	return false
}

func onRoster(v state.View, id node.ID) bool {
	_, ok := v.Member(id)
	return ok
}
