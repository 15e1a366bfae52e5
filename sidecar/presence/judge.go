package presence

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"net/netip"
	"slices"
	"time"
)

// Window is the time within which a minion with Salt's defaults says something.
const Window = 65 * time.Minute

// Group is the connections to one node's 4505 from one address that do not say which minion they belong to.
type Group struct {
	Node  string     `json:"node,omitempty"`
	From  netip.Addr `json:"from"`
	Count int        `json:"count"`
	Young int        `json:"young,omitempty"` // those of them that are younger than Window
	Past  bool       `json:"-"`               // the node does not answer: it is what it said last
}

// Named is a connection that says which minion it belongs to.
type Named struct {
	Node string     `json:"node,omitempty"`
	From netip.Addr `json:"from"`
	Hash string     `json:"hash"` // Hash of the minion's id
}

// Sighting is a minion's latest request.
type Sighting struct {
	ID   string     `json:"id"`
	At   time.Time  `json:"at,omitzero"` // zero: it is not known that there was one
	From netip.Addr `json:"from,omitzero"`
	Node string     `json:"node,omitempty"` // it was sent to
}

// Scene is what there is to judge by.
type Scene struct {
	IDs    []string            // accepted minions
	Seen   map[string]Sighting // of those that were heard of
	Groups []Group
	Named  []Named
	Fewer  map[netip.Addr]time.Time // when connections from an address were seen to have become fewer (Drops)
}

// Minion is what is found about one.
type Minion struct {
	Sighting
	Alive bool
	Doubt bool   // it may also be one of those that are not (rules 3 and 4)
	On    string // a node that it, or its address, is connected to
}

// Hash is what a minion with zmq_filtering subscribes to (salt/transport/zeromq.py).
func Hash(id string) string {
	sum := sha1.Sum([]byte(id))
	return hex.EncodeToString(sum[:])
}

// IsHash says whether a topic may be one.
func IsHash(topic string) bool {
	if len(topic) != hex.EncodedLen(sha1.Size) {
		return false
	}
	_, err := hex.DecodeString(topic)
	return err == nil
}

// place is an address: the connections from it and who claims one.
type place struct {
	count, young int // young: of nodes that answer
	node         string
	fewer        time.Time
	claims       []int // of Scene.IDs, those heard of last first
}

// Judge finds out who is alive, in the order of IDs.
func Judge(s Scene, now time.Time) []Minion {
	out := make([]Minion, len(s.IDs))
	named := map[string]string{} // hash: node
	for _, n := range s.Named {
		named[n.Hash] = n.Node
	}
	places := map[netip.Addr]*place{}
	at := func(a netip.Addr) *place {
		a = a.Unmap().WithZone("")
		if places[a] == nil {
			places[a] = &place{fewer: s.Fewer[a]}
		}
		return places[a]
	}
	for _, g := range s.Groups {
		p := at(g.From)
		p.count += g.Count
		if !g.Past {
			p.young += min(g.Young, g.Count)
			p.node = g.Node
		}
		p.node = cmp.Or(p.node, g.Node)
	}
	for i, id := range s.IDs {
		out[i].Sighting = s.Seen[id]
		out[i].ID = id
		if len(named) > 0 {
			if on, ok := named[Hash(id)]; ok {
				out[i].Alive, out[i].On = true, on
				continue
			}
		}
		if seen := out[i].Sighting; !seen.At.IsZero() && seen.From.IsValid() {
			p := at(seen.From)
			p.claims = append(p.claims, i)
		}
	}
	var without []int
	unclaimed := 0
	for _, p := range places {
		without = append(without, p.judgePlace(out, now)...)
		unclaimed += max(0, min(p.young, p.count-len(p.claims)))
	}
	sortLatest(without, out)
	for _, i := range without[:min(len(without), unclaimed)] {
		if isRecent(out[i], now) {
			out[i].Alive, out[i].Doubt = true, true
		}
	}
	return out
}

// judgePlace goes by rules 2 and 3; it returns who has no connection.
func (p *place) judgePlace(out []Minion, now time.Time) (without []int) {
	if p.count == 0 {
		return p.claims
	}
	sortLatest(p.claims, out)
	short := p.count < len(p.claims)
	settled := short && out[p.claims[p.count-1]].At.After(p.fewer) && !p.fewer.IsZero()
	for n, i := range p.claims {
		m := &out[i]
		switch {
		case !short, settled && m.At.After(p.fewer):
			m.Alive = true
		case !settled && (n < p.count || isRecent(*m, now)):
			m.Alive, m.Doubt = true, true
		}
		if m.Alive {
			m.On = p.node
		}
	}
	return nil
}

// sortLatest sorts by when minions were heard of, those heard of last first.
func sortLatest(list []int, of []Minion) {
	slices.SortFunc(list, func(a, b int) int {
		return cmp.Or(of[b].At.Compare(of[a].At), cmp.Compare(of[a].ID, of[b].ID))
	})
}

func isRecent(m Minion, now time.Time) bool { return now.Sub(m.At) <= Window }

// Drops remembers when connections from addresses were seen to have become fewer.
type Drops struct {
	counts map[netip.Addr]int
	at     map[netip.Addr]time.Time
}

// See compares the connections there are with those of the last look. The answer is Scene.Fewer; it is not to be
// changed.
func (d *Drops) See(groups []Group, now time.Time) map[netip.Addr]time.Time {
	counts := map[netip.Addr]int{}
	for _, g := range groups {
		counts[g.From.Unmap().WithZone("")] += g.Count
	}
	at := map[netip.Addr]time.Time{}
	for a, t := range d.at {
		if now.Sub(t) <= Window {
			at[a] = t
		}
	}
	for a, was := range d.counts {
		if counts[a] < was {
			at[a] = now
		}
	}
	d.counts, d.at = counts, at
	return at
}
