package router

import (
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/ring"
)

// Node is a member that has a Salt master (a witness is not in a View).
type Node struct {
	ID       node.ID
	Weight   int
	Draining bool
	Alive    bool // its saltclusterd can be reached
	MasterUp bool // and says that its master answers
	Major    int  // major version of its Salt; zero: not known
	Load     int  // requests its master is working on, roughly
	// TakesReturns says that its saltclusterd takes returns without the master; those of before native returns do not say
	// it.
	TakesReturns bool
	// TakesMines says that it writes mines that another master has written; those of before do not say it.
	TakesMines bool
	// CachesPillars says that its master answers minions from its own cache of pillars.
	CachesPillars bool
	MasterID      string // what its master puts into publications; empty: the node's id
}

// Usable says whether requests can be carried out there.
func (n Node) Usable() bool { return n.Alive && n.MasterUp }

// JobTable knows who published a job (Jobs).
type JobTable interface {
	Lookup(jid string) (node.ID, bool)
	// Several returns the nodes that have published the same job, nil unless there are several.
	Several(jid string) []node.ID
}

// View is what Decide looks at. It is read only, so one View can serve many requests.
type View struct {
	Self  node.ID
	Nodes []Node   // this node included
	Jobs  JobTable // may be nil
	// Leader is the node that leads the cluster, as far as this one knows; it may be none of Nodes.
	Leader node.ID
	Events *EventRules // where events of minions fire; nil: with the owner
	// Pusher tells which minion has pushed the file of a path, when masters serve what minions push; "": none has. nil:
	// they do not.
	Pusher func(path string) string
	// Relaying tells how many requests this node has handed to another one that are not answered yet; nil: none.
	Relaying func(node.ID) int
}

// OthersServe says whether another node than id takes its minions.
func (v View) OthersServe(id node.ID) bool {
	for _, n := range v.Nodes {
		if n.ID != id && n.Alive && !n.Draining {
			return true
		}
	}
	return false
}

func (v View) findNode(id node.ID) (Node, bool) {
	for _, n := range v.Nodes {
		if n.ID == id {
			return n, true
		}
	}
	return Node{}, false
}

func (v View) byMasterID(id string) (Node, bool) {
	for _, n := range v.Nodes {
		if n.MasterID == id || n.MasterID == "" && string(n.ID) == id {
			return n, true
		}
	}
	return Node{}, false
}

// rankUsable lists the usable nodes in the order in which they are responsible for key.
func (v View) rankUsable(key string) []node.ID { return v.rankNodes(key, Node.Usable) }

func (v View) rankNodes(key string, may func(Node) bool) []node.ID {
	candidates := make([]ring.Node, 0, len(v.Nodes))
	for _, n := range v.Nodes {
		if may(n) {
			candidates = append(candidates, ring.Node{ID: n.ID, Weight: n.Weight, Draining: n.Draining})
		}
	}
	return ring.Ranked(key, candidates)
}
