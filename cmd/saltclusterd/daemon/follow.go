package daemon

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus/state"
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
	entries := membership.Roster(v, m.log)
	if len(entries) == 0 {
		return nil
	}
	removed, err := m.roster.Set(v.Rev(), entries)
	for _, fp := range removed {
		m.port.Revoke(fp)
	}
	m.gossip.Nudge()
	keys := membership.GossipKeys(v)
	if !slices.EqualFunc(m.keys, keys, bytes.Equal) {
		if err := m.gossip.SetKeys(keys); err != nil {
			m.log.Error("gossip keys not changed", "err", err)
		}
		m.keys = keys
	}
	return errors.Join(err, m.remember(v))
}

// remember stores what has changed of the membership.
func (m *member) remember(v state.View) error {
	next := *m.stored
	next.GossipKeys, next.Generation, next.Born = m.keys, v.Generation(), true
	if _, left := m.standing.Left(); left || next.Equal(m.stored) {
		return nil
	}
	if err := next.Write(m.d.cfg.Paths.StateDir); err != nil {
		return err
	}
	m.stored = &next
	return nil
}
