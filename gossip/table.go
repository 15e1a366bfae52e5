package gossip

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/signal"
)

// State is what gossip knows about a member.
type State string

const (
	Alive  State = "alive"  // answers, or is at least not found dead yet
	Dead   State = "dead"   // stopped answering
	Left   State = "left"   // is gone, and had announced to drain
	Absent State = "absent" // on the roster, but never seen by this node since its start
)

// Member is a node on the roster with what gossip knows about it.
type Member struct {
	ID    node.ID
	Addr  netip.AddrPort
	Meta  node.Meta // the last one heard
	State State
	Since time.Time // of the state; for Absent: the start of this node's gossip
}

// table is the outcome of memberlist's events. It has its own lock, so that readers never wait for memberlist.
type table struct {
	self   node.ID
	roster Roster
	now    func() time.Time
	start  time.Time

	mu      sync.Mutex
	seen    map[node.ID]Member
	waiters map[chan struct{}]struct{}
}

func newTable(self node.ID, roster Roster, now func() time.Time) *table {
	return &table{
		self: self, roster: roster, now: now, start: now(),
		seen: map[node.ID]Member{}, waiters: map[chan struct{}]struct{}{},
	}
}

// setMember notes an event.
func (t *table) setMember(m Member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, known := t.seen[m.ID]
	m.Since = t.now()
	if known && old.State == m.State {
		m.Since = old.Since
	}
	if m == old {
		return
	}
	t.seen[m.ID] = m
	for c := range t.waiters {
		signal.Send(c)
	}
}

// listMembers returns the roster, in the order of ids, with what is known. Nodes that are not on it do not appear.
func (t *table) listMembers() []Member {
	entries := t.roster.Entries()
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Member, 0, len(entries))
	for _, e := range entries {
		out = append(out, t.knownState(e))
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// findMember returns the state of one node; false: it is not on the roster.
func (t *table) findMember(id node.ID) (Member, bool) {
	e, ok := t.roster.Lookup(id)
	if !ok {
		return Member{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.knownState(e), true
}

func (t *table) knownState(e node.Entry) Member {
	m, ok := t.seen[e.ID]
	if !ok || m.Addr != e.Addr && e.ID != t.self {
		// Never seen, or at an address it does not have any more.
		return Member{ID: e.ID, Addr: e.Addr, State: Absent, Since: t.start}
	}
	m.Addr = e.Addr
	return m
}

func (t *table) addWaiter() (c chan struct{}, stop func()) {
	c = make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiters[c] = struct{}{}
	return c, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.waiters, c)
	}
}
