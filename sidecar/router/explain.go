package router

import (
	"strings"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/saltwire"
)

// Explanation says where an event of a minion would fire now, and by which rule.
type Explanation struct {
	Rule   EventRule // that matches; empty: none does
	Route  string    // owner, origin, leader, all
	JID    string    // of the job that the event belongs to, whose publisher is known
	Nodes  []node.ID // on whose masters it fires; empty: no node can take it
	Others []node.ID // who takes the place of the one node, in order
}

// ExplainEvent decides about an event that the minion sends to this node, as Decide does, and says why.
func (v View) ExplainEvent(id, tag string) Explanation {
	p := saltwire.Peek{Cmd: "_minion_event", ID: id, Tag: tag}
	x := Explanation{Route: "owner"}
	if rule, ok := v.Events.findRule(tag); ok {
		x.Rule, x.Route = rule.text, rule.text.Route
	}
	if _, ofJob := v.ofJob(p); ofJob && (x.Route == "owner" || x.Route == "origin") {
		x.JID, _, _ = strings.Cut(strings.TrimPrefix(tag, "salt/job/"), "/")
	}
	d := v.decideEvent(p)
	if d.Kind != Split {
		x.Nodes, x.Others = v.firesOn(d.Kind, d.Node), d.Others
		return x
	}
	for _, part := range d.Parts {
		x.Nodes = append(x.Nodes, v.firesOn(part.Kind, part.Node)...)
	}
	return x
}

func (v View) firesOn(k Kind, n node.ID) []node.ID {
	switch k {
	case ToLocal:
		return []node.ID{v.Self}
	case ToNode, Keep:
		return []node.ID{n}
	}
	return nil
}
