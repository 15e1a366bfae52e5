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

// apply brings roster, remembered membership, gossip keys, links and epochs up to v.
func (m *member) apply(v state.View) {
	if !v.Initialized() {
		return // consensus has not told us anything yet: what we remember holds
	}
	entries := m.entries(v)
	if len(entries) == 0 {
		return
	}
	for _, fp := range m.roster.set(entries) {
		m.port.Revoke(fp)
	}
	keys := gossipKeys(v)
	if m.remember(v, entries, keys) {
		if err := m.gossip.SetKeys(keys); err != nil {
			m.log.Error("gossip keys not changed", "err", err)
		}
	}
	m.svc.apply(v)
}

// entries returns the roster of v in the form the peer port needs.
func (m *member) entries(v state.View) []node.Entry {
	var out []node.Entry
	for _, mem := range v.Members() {
		addr, err := node.ParseAddr(mem.Addr)
		if err != nil {
			m.log.Error("roster entry without a usable address", "node", mem.ID, "err", err)
			continue
		}
		out = append(out, node.Entry{ID: mem.ID, Addr: addr, Fingerprint: node.Fingerprint(mem.Fingerprint)})
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

// remember stores what a restart needs when it has changed. It reports whether the gossip keys have.
func (m *member) remember(v state.View, entries []node.Entry, keys [][]byte) (newKeys bool) {
	newKeys = !slices.EqualFunc(m.seed.GossipKeys, keys, bytes.Equal)
	if !newKeys && slices.Equal(m.seed.Members, entries) {
		return false
	}
	next := *m.seed
	next.Rev, next.Members, next.GossipKeys = v.Rev(), entries, keys
	if err := next.write(m.d.cfg.Paths.StateDir); err != nil {
		m.log.Error("membership not stored", "err", err)
	}
	m.seed = &next
	return newKeys
}
