package router

import (
	"slices"
	"strings"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/saltwire"
)

// Part is a share of a _minion_event: the events that go one way.
type Part struct {
	Kind   Kind      // ToLocal or ToNode
	Node   node.ID   // ToNode
	Others []node.ID // as of a Decision
	// All says that the same events also go to every other master, and Copy that the minion need not wait for this one.
	All, Copy bool
	Events    []int // their places in the list; nil: the whole load
}

// decideEvent decides on a _minion_event, which comes with one event or with a list of them.
func (v View) decideEvent(p saltwire.Peek) Decision {
	if v.Events.isEmpty() {
		return v.byJob(p)
	}
	if p.Events == nil { // AESFuncs._minion_event looks for the list first
		return splitGroups([]group{{v.Events.Route(p.Tag), nil}}, v, p)
	}
	tags, err := saltwire.EventTags(p.Events)
	if err != nil {
		return v.byJob(p) // it is the master's Python that judges it
	}
	return splitGroups(groupEvents(tags, v.Events), v, p)
}

// group is the events of a list that have one route.
type group struct {
	route  EventRoute
	events []int // nil: all of them
}

// groupEvents sorts events by their route.
func groupEvents(tags []string, rules *EventRules) (out []group) {
	seen := map[string]EventRoute{}
	for i, tag := range tags {
		route, ok := seen[tag]
		if !ok {
			route = rules.Route(tag)
			seen[tag] = route
		}
		at := slices.IndexFunc(out, func(g group) bool { return g.route == route })
		if at < 0 {
			at, out = len(out), append(out, group{route: route})
		}
		out[at].events = append(out[at].events, i)
	}
	switch len(out) {
	case 0:
		return []group{{route: Owner}}
	case 1:
		out[0].events = nil
	}
	return out
}

// splitGroups makes one decision of what is decided for each group. As long as one way is enough Parts is empty.
func splitGroups(all []group, v View, p saltwire.Peek) Decision {
	if len(all) == 1 && all[0].route != Masters {
		return v.toOne(all[0].route, p)
	}
	d := Decision{Kind: Split}
	for _, g := range all {
		if g.route == Masters {
			d.Parts = append(d.Parts, v.toMasters(p.ID, g.events)...)
			continue
		}
		one := v.toOne(g.route, p)
		if one.Kind == Refuse {
			continue
		}
		d.Parts = append(d.Parts, Part{Kind: one.Kind, Node: one.Node, Others: one.Others, Events: g.events})
	}
	if len(d.Parts) == 0 {
		return Decision{Kind: Refuse}
	}
	return d
}

// toOne sends events to one master.
func (v View) toOne(route EventRoute, p saltwire.Peek) Decision {
	switch route {
	case Leader:
		ranked := v.rankUsable(p.ID)
		if at := slices.Index(ranked, v.Leader); at > 0 {
			ranked = slices.Insert(withoutNode(ranked, v.Leader), 0, v.Leader)
		}
		return v.toRanked(ranked)
	case Origin:
		if d, ok := v.ofJob(p); ok {
			return d
		}
		return v.preferLocal(p.ID)
	default:
		return v.byJob(p)
	}
}

// toMasters sends events to every master that answers, this node's first: the minion waits for one of them only. None
// has a second choice, for every other one has them already.
func (v View) toMasters(id string, events []int) (parts []Part) {
	ranked := v.rankUsable(id)
	if at := slices.Index(ranked, v.Self); at > 0 {
		ranked = slices.Insert(withoutNode(ranked, v.Self), 0, v.Self)
	}
	for i, n := range ranked {
		part := Part{Kind: ToNode, Node: n, All: true, Copy: i > 0, Events: events}
		if n == v.Self {
			part.Kind, part.Node = ToLocal, ""
		}
		parts = append(parts, part)
	}
	return parts
}

// ofJob finds where an event of a job goes (state.event progress: salt/job/<jid>/prog/…, with the jid in the load):
// where its CLI listens.
func (v View) ofJob(p saltwire.Peek) (Decision, bool) {
	jid := p.JID
	if jid == "" {
		if rest, ok := strings.CutPrefix(p.Tag, "salt/job/"); ok {
			jid, _, _ = strings.Cut(rest, "/")
		}
	}
	n, ok := v.jobNode(jid)
	if !ok || !n.Usable() {
		return Decision{}, false
	}
	return v.toPublisher(n, jid), true
}

// byJob sends an event of a job to the job's publisher, and any other to the owner of the minion.
func (v View) byJob(p saltwire.Peek) Decision {
	if d, ok := v.ofJob(p); ok {
		return d
	}
	return v.toRanked(v.rankUsable(p.ID))
}
