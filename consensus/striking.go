package consensus

import (
	"slices"

	"github.com/hashicorp/raft"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// A removal has two steps: the roster's, from which on nobody speaks to the node, and raft's, which takes its vote. In between it
// counts as a voter and agrees to nothing. One such voter is what a cluster bears; several, removed together, would be its
// majority, which the second step needs. So the leader lets the next removal into the log when the vote of the one before is gone.

// admit says why a request is not put into the log now: with the results that its sender gets, or as a failure of this attempt.
// ahead are the requests before it in the same batch.
func (n *Node) admit(r *raft.Raft, req state.Request, ahead []state.Request) ([]state.Result, *attemptError) {
	v := n.View()
	strikes := func(q state.Request) bool {
		return slices.ContainsFunc(q.Commands, func(c state.Command) bool {
			remove, ok := c.(state.MemberRemove)
			return ok && onRoster(v, remove.ID) // who is off already may be this request's own first attempt
		})
	}
	if !strikes(req) {
		return nil, nil
	}
	if !n.Serving() { // what leaders before this one have removed may not be known yet
		return nil, &attemptError{err: ErrNoLeader}
	}
	voters, _ := servers(r)
	stranger := slices.IndexFunc(voters, func(id node.ID) bool { return !onRoster(v, id) })
	if stranger < 0 && !slices.ContainsFunc(ahead, strikes) {
		return nil, nil
	}
	who := "another node"
	if stranger >= 0 {
		who = string(voters[stranger])
	}
	refused := make([]state.Result, len(req.Commands))
	for i := range refused {
		refused[i] = state.Result{Code: state.Conflict, Message: who + " is being removed and still has its vote: one after the other"}
	}
	return refused, nil
}

func onRoster(v state.View, id node.ID) bool {
	_, ok := v.Member(id)
	return ok
}
