package removal

import (
	"cmp"
	"fmt"

	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/returns"
)

// quorum is what decides whether a member may be removed: who votes, and who is there.
type quorum struct {
	voters  []node.ID
	alive   map[node.ID]bool // as gossip sees it
	masters []node.ID        // members with a salt-master

	aside    int    // returns that the salt-master of the member does not answer, and that were not handed over
	asideWhy string // they were not
}

// refusal is why a member may not be removed.
type refusal struct {
	sentence, hint string
	forcible       bool
}

// refuse says why a member may not be removed; nil when it may.
func (q quorum) refuse(id node.ID) *refusal {
	voters, living := 0, 0
	for _, v := range q.voters {
		if v == id {
			continue
		}
		voters++
		if q.alive[v] {
			living++
		}
	}
	need := voters/2 + 1
	switch {
	case len(q.masters) == 1 && q.masters[0] == id:
		return &refusal{
			sentence: fmt.Sprintf("%s is the last node with a salt-master", id),
			hint:     "join another one first: saltclusterctl join",
		}
	case voters == 0:
		return &refusal{
			sentence: fmt.Sprintf("%s is the only node that votes", id),
			hint:     "wait until another member votes: saltclusterctl members",
		}
	case living < need:
		down := q.down(id)
		return &refusal{
			sentence: fmt.Sprintf("without %s only %d of %d voters would be left, and %d are needed: %s %s down",
				id, living, voters, need, wording.Enumerate(down), wording.Choose(len(down), "is", "are")),
			hint: fmt.Sprintf("start %s, or remove it first (saltclusterctl remove %s); --force removes %s anyway, "+
				"and then only saltclusterctl recover --force-new-cluster helps", down[0], down[0], id),
			forcible: true,
		}
	case q.aside > 0:
		return &refusal{
			sentence: fmt.Sprintf("%s has returns that no other node has: %s (not handed over: %s)",
				id, returns.DescribeAside(q.aside), cmp.Or(q.asideWhy, "the reason is not known")),
			hint: fmt.Sprintf("on %s: saltclusterctl returns list, then saltclusterctl returns retry or drop; or saltclusterctl drain %s and then "+
				"saltclusterctl remove --force, which leaves them there", id, id),
			forcible: true,
		}
	}
	return nil
}

// down lists the voters that are not there, without except.
func (q quorum) down(except node.ID) []string {
	var out []string
	for _, v := range q.voters {
		if v != except && !q.alive[v] {
			out = append(out, string(v))
		}
	}
	return out
}

// describeDown returns the end of a sentence about a lost majority.
func (q quorum) describeDown() string {
	down := q.down("")
	if len(down) == 0 {
		return ""
	}
	return fmt.Sprintf(": %s %s down", wording.Enumerate(down), wording.Choose(len(down), "is", "are"))
}

// hint says what to do about a lost majority.
func (q quorum) hint() string {
	down := q.down("")
	if len(down) == 0 || len(q.voters)-len(down) > len(q.voters)/2 { // gossip sees a majority, but consensus has no leader
		return "wait some seconds for an election; if this persists, check the network between the " +
			"nodes on the peer port, tcp and udp (saltclusterctl doctor)"
	}
	return fmt.Sprintf("start saltclusterd on %s, or check the network on the peer port; if %s gone for good: "+
		"saltclusterctl recover --force-new-cluster on one of the remaining nodes",
		wording.Enumerate(down), wording.Choose(len(down), "it is", "they are"))
}
