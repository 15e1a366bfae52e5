package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// follow carries what consensus decides into the parts that act on it, until ctx ends.
func (m *member) follow(ctx context.Context) {
	changed := m.cons.Watch(ctx)
	for {
		var again <-chan time.Time
		if err := m.apply(m.cons.View()); err != nil {
			m.log.Error("what consensus decided is not stored; it is tried again", "err", err)
			again = time.After(storeRetry)
		}
		select {
		case _, ok := <-changed:
			if !ok {
				return
			}
		case <-again:
		}
	}
}

// storeRetry is the pause after the disk did not take what this node has to remember.
const storeRetry = 5 * time.Second

// apply brings roster, remembered membership and gossip keys up to v. An error is about the disk: in memory all is in force.
func (m *member) apply(v state.View) error {
	if !v.Initialized() {
		return nil // consensus has not told us anything yet: what we remember holds
	}
	entries := m.entries(v)
	if len(entries) == 0 {
		return nil
	}
	removed, err := m.roster.Set(v.Rev(), entries)
	for _, fp := range removed {
		m.port.Revoke(fp)
	}
	m.gossip.Nudge()
	keys := gossipKeys(v)
	if !slices.EqualFunc(m.keys, keys, bytes.Equal) {
		if err := m.gossip.SetKeys(keys); err != nil {
			m.log.Error("gossip keys not changed", "err", err)
		}
		m.keys = keys
	}
	return errors.Join(err, m.remember(v))
}

// entries returns the roster of v in the form the peer port needs.
func (m *member) entries(v state.View) []node.Entry { return entriesOf(v, m.log) }

func entriesOf(v state.View, log *slog.Logger) []node.Entry {
	var out []node.Entry
	for _, mem := range v.Members() {
		e, err := node.ParseEntry(string(mem.ID), mem.Addr, mem.Fingerprint)
		if err != nil {
			log.Error("unusable roster entry", "node", mem.ID, "err", err)
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

// remember stores what has changed of the membership.
func (m *member) remember(v state.View) error {
	next := *m.stored
	next.GossipKeys, next.Generation, next.Born = m.keys, v.Generation(), true
	if next.Equal(m.stored) || m.left.Load() != nil {
		return nil
	}
	if err := next.Write(m.d.cfg.Paths.StateDir); err != nil {
		return err
	}
	m.stored = &next
	return nil
}
