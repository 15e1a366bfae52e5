package daemon

import (
	"bytes"
	"slices"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// follow carries what consensus decides into the parts that act on it, until the member closes.
func (m *member) follow() {
	changed := m.cons.Watch(m.ctx)
	for {
		m.apply(m.cons.View())
		if _, ok := <-changed; !ok {
			return
		}
	}
}

// apply brings roster, remembered membership and gossip keys up to v.
func (m *member) apply(v state.View) {
	if !v.Initialized() {
		return // consensus has not told us anything yet: what we remember holds
	}
	entries := m.entries(v)
	if len(entries) == 0 {
		return
	}
	removed, err := m.roster.Set(v.Rev(), entries)
	if err != nil {
		m.log.Error("roster not stored", "err", err)
	}
	for _, fp := range removed {
		m.port.Revoke(fp)
	}
	m.gossip.Nudge()
	if keys := gossipKeys(v); m.remember(keys) {
		if err := m.gossip.SetKeys(keys); err != nil {
			m.log.Error("gossip keys not changed", "err", err)
		}
	}
}

// entries returns the roster of v in the form the peer port needs.
func (m *member) entries(v state.View) []node.Entry {
	var out []node.Entry
	for _, mem := range v.Members() {
		e, err := node.ParseEntry(string(mem.ID), mem.Addr, mem.Fingerprint)
		if err != nil {
			m.log.Error("unusable roster entry", "node", mem.ID, "err", err)
			continue
		}
		out = append(out, e)
	}
	return out
}

func gossipKeys(v state.View) [][]byte {
	var keys [][]byte
	for _, k := range v.GossipKeys() {
		keys = append(keys, k.Key.Bytes())
	}
	return keys
}

// remember stores the gossip keys when they have changed, and reports whether they have.
func (m *member) remember(keys [][]byte) bool {
	if slices.EqualFunc(m.keys, keys, bytes.Equal) {
		return false
	}
	m.keys = keys
	next := *m.seed
	next.GossipKeys = keys
	if err := next.write(m.d.cfg.Paths.StateDir); err != nil {
		m.log.Error("membership not stored", "err", err)
	}
	return true
}
