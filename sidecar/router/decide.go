package router

import (
	"slices"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/saltwire"
)

// Kind is what is to be done with a request.
type Kind uint8

// The kinds of a Decision.
const (
	Refuse  Kind = iota // no node can take it now; no answer
	ToLocal             // the local master; when it does not take it, Others in order
	ToNode              // Node; when that cannot be reached, Others in order (this node may be among them)
	ToAll               // the local master, whose answer counts, and a copy to each of Others
	Answer              // Reply, sealed for the minion
	// a return of a job of Node, which cannot be reached: keep it for Node; when that cannot be, Others in order
	Keep
	Split // Parts, each its own way
)

var kindNames = [...]string{
	Refuse: "refuse", ToLocal: "local", ToNode: "node", ToAll: "all", Answer: "answer", Keep: "keep", Split: "split",
}

// String names the kind for logs and metrics.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Decision says where a request goes.
type Decision struct {
	Kind    Kind
	Node    node.ID   // ToNode, Keep
	Others  []node.ID // never contains Node; ToLocal and ToAll: never this node
	Job     bool      // ToNode: a return for the publisher of its job, to be kept for it rather than given to Others
	Also    []node.ID // Job: nodes that have published the same job, and can take the return in the place of Node
	Copies  []node.ID // ToNode: nodes that get a copy, whose answers do not count
	Parts   []Part    // Split
	Asks    node.ID   // a question for the returns of a job: its publisher, when that is a member
	Reply   []byte    // Answer: msgpack
	Repeat  bool      // see Command.Repeat: without it Others may be tried only when nothing was sent
	Unknown bool      // no Salt has the command
}

// CopyTo returns the nodes that get a copy of a write.
func (d Decision) CopyTo() []node.ID {
	if d.Kind == ToAll {
		return d.Others
	}
	return d.Copies
}

// Job ids that do not name a job: a minion's schedule and salt-call return with "req", and a master makes an id.
const noJob = "req"

// emptyMap is what a stock master answers to a command it does not have (salt/master.py:MWorker._handle_aes).
var emptyMap = []byte{0x80}

// Decide says where the request of an authenticated minion goes. It covers the commands of class AES.
func Decide(p saltwire.Peek, v View) Decision {
	c, known := Lookup(AES, p.Cmd)
	if !known {
		return Decision{Kind: Answer, Reply: emptyMap, Unknown: true}
	}
	var d Decision
	switch c.Route {
	case ByJID:
		d = v.byJID(p)
	case ByPublisher:
		d = v.byPublisher(p)
	case ByMinion:
		d = v.toRanked(v.rankUsable(p.ID))
	case ByJob:
		d = v.decideEvent(p)
	case ByOwner:
		d = v.byOwner(p.ID)
	case ByCache:
		d = v.byCache(p.ID)
	case AllNewest:
		d = v.toAll(p.ID, c.Since)
	default:
		d = v.decideFile(p)
	}
	d.Repeat = c.Repeat
	return d
}

// SignIn says who decides about a minion's key. Clear requests other than these never leave the node.
func (v View) SignIn(id string) Decision { return v.preferLocal(id) }

// preferLocal prefers this node's master; without it the least loaded one is asked, and among equals the ring's order
// for the minion keeps one minion on one node.
func (v View) preferLocal(id string) Decision {
	ranked := v.rankUsable(id)
	if self, ok := v.findNode(v.Self); ok && self.Usable() {
		return Decision{Kind: ToLocal, Others: v.leastLoaded(withoutNode(ranked, v.Self))}
	}
	return v.toRanked(v.leastLoaded(ranked))
}

// toRanked sends to the first of rankUsable.
func (v View) toRanked(ranked []node.ID) Decision {
	switch {
	case len(ranked) == 0:
		return Decision{Kind: Refuse}
	case ranked[0] == v.Self:
		return Decision{Kind: ToLocal, Others: ranked[1:]}
	}
	return Decision{Kind: ToNode, Node: ranked[0], Others: ranked[1:]}
}

// byJID sends a return to the publisher of its job.
func (v View) byJID(p saltwire.Peek) Decision {
	if p.Mixed {
		// A syndic's bundle for jobs of several publishers cannot be taken apart without breaking its signature.
		return v.toAll(p.ID, 0)
	}
	key := p.JID
	if key == "" || key == noJob {
		key = p.ID
	}
	n, known := v.findPublisher(p)
	var also []node.ID
	if known && key == p.JID {
		n, also = v.whoTakes(n, p.JID)
	}
	switch {
	case known && (n.Alive || key == p.JID && n.ID == v.Self):
		d := v.toPublisher(n, p.JID)
		d.Job, d.Also = d.Kind == ToNode, also
		return d
	case known && key == p.JID:
		return Decision{Kind: Keep, Node: n.ID, Others: v.returnTakers(key)}
	}
	return v.toRanked(v.returnTakers(key))
}

// whoTakes returns the node that takes the returns of a job that n has published, and others that can. It is n unless n
// cannot pass on what comes and another node has published the same job: then a syndic beside that one does.
func (v View) whoTakes(n Node, jid string) (Node, []node.ID) {
	if v.Jobs == nil {
		return n, nil
	}
	several := v.Jobs.Several(jid)
	if several == nil {
		return n, nil
	}
	also := v.rankNodes(jid, func(o Node) bool { return o.ID != n.ID && o.Usable() && slices.Contains(several, o.ID) })
	if !n.Usable() && len(also) > 0 {
		n, _ = v.findNode(also[0])
		also = also[1:]
	}
	return n, also
}

// byPublisher asks who published a job. When that is not known, or it is gone, those that may have the job are asked
// one after the other, this node first; they need no master for that.
func (v View) byPublisher(p saltwire.Peek) Decision {
	if p.JID == "" {
		return v.preferLocal(p.ID)
	}
	others := v.rankNodes(p.JID, func(n Node) bool { return n.Usable() || n.Alive && n.TakesReturns })
	d := Decision{Kind: ToLocal}
	n, known := v.findPublisher(p)
	if known {
		d.Asks = n.ID
	}
	if known && n.Alive && n.ID != v.Self {
		d.Kind, d.Node, d.Others = ToNode, n.ID, withoutNode(others, n.ID)
		return d
	}
	d.Others = withoutNode(others, v.Self)
	return d
}

// returnTakers are the nodes responsible for a return whose publisher is not known: while no master answers, those that
// can do without.
func (v View) returnTakers(key string) []node.ID {
	if ids := v.rankUsable(key); len(ids) > 0 {
		return ids
	}
	return v.rankNodes(key, func(n Node) bool { return n.Alive && n.TakesReturns })
}

// toPublisher sends to a node that is alive, whether or not its master answers: it knows best how to keep a return for
// it. All nodes agree on the others.
func (v View) toPublisher(n Node, jid string) Decision {
	others := withoutNode(v.rankUsable(jid), n.ID)
	if n.ID == v.Self {
		return Decision{Kind: ToLocal, Others: others}
	}
	return Decision{Kind: ToNode, Node: n.ID, Others: others}
}

// findPublisher finds the member that published the job of p, whether or not it is alive.
func (v View) findPublisher(p saltwire.Peek) (Node, bool) {
	if p.MasterID != "" {
		if n, ok := v.byMasterID(p.MasterID); ok {
			return n, true
		}
	}
	return v.jobNode(p.JID)
}

func (v View) jobNode(jid string) (Node, bool) {
	if jid == "" || jid == noJob || v.Jobs == nil {
		return Node{}, false
	}
	id, ok := v.Jobs.Lookup(jid)
	if !ok {
		return Node{}, false
	}
	return v.findNode(id)
}

// byOwner writes on one node, from which all others get it. While one of them does not, each has to write on its own.
func (v View) byOwner(id string) Decision {
	if slices.ContainsFunc(v.Nodes, func(n Node) bool { return n.Alive && !n.TakesMines }) {
		return v.toAll(id, 0)
	}
	return v.toRanked(v.rankUsable(id))
}

// byCache sends what masters cache to the ring's owner of the minion: a minion that asks for its pillar to be rendered
// anew has the cache of one master cleared, and asks through any node later.
func (v View) byCache(id string) Decision {
	if slices.ContainsFunc(v.Nodes, func(n Node) bool { return n.Alive && n.CachesPillars }) {
		return v.toRanked(v.rankUsable(id))
	}
	return v.preferLocal(id)
}

// Owns says whether this node is the one that is asked first about a minion.
func (v View) Owns(id string) bool {
	ranked := v.rankUsable(id)
	return len(ranked) > 0 && ranked[0] == v.Self
}

// toAll writes on every alive node whose Salt has the command. When the local master cannot answer, another one does.
func (v View) toAll(id string, since int) Decision {
	var all []node.ID
	for _, n := range v.Nodes {
		if n.Alive && n.Major >= since {
			all = append(all, n.ID)
		}
	}
	self, ok := v.findNode(v.Self)
	others := withoutNode(slices.Clone(all), v.Self)
	switch {
	case ok && self.Usable() && self.Major >= since:
		return Decision{Kind: ToAll, Others: others}
	case !slices.ContainsFunc(v.Nodes, func(n Node) bool { return n.Major >= since }):
		return Decision{Kind: Answer, Reply: emptyMap} // what an older master answers, without a complaint in its log
	}
	d := v.toRanked(slices.DeleteFunc(v.rankUsable(id), func(n node.ID) bool { return !slices.Contains(all, n) }))
	if d.Kind == ToNode {
		d.Copies = withoutNode(others, d.Node)
	}
	d.Others = nil
	return d
}

func withoutNode(ids []node.ID, id node.ID) []node.ID {
	return slices.DeleteFunc(ids, func(o node.ID) bool { return o == id })
}
