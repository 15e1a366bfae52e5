package membership

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"saltclusterd/consensus/state"
)

// storeRetry is the pause after the disk did not take what this node has to remember.
const storeRetry = 5 * time.Second

// Follow applies what consensus decides to roster, gossip keys and record, until ctx ends.
func (m *Member) Follow(ctx context.Context) {
	changed := m.Consensus.Watch(ctx)
	for {
		var again <-chan time.Time
		if err := m.apply(m.Consensus.View()); err != nil {
			m.log.Error("a decision of the cluster was not stored; trying again", "err", err)
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

// apply brings roster, record and gossip keys up to v. An error is about the disk: in memory all is in force.
func (m *Member) apply(v state.View) error {
	if !v.Initialized() {
		return nil // consensus has not told anything yet: the record holds
	}
	entries := Roster(v, m.log)
	if len(entries) == 0 {
		return nil
	}
	removed, err := m.Roster.Set(v.Rev(), entries)
	for _, fp := range removed {
		m.Port.Revoke(fp)
	}
	m.Gossip.Nudge()
	keys := GossipKeys(v)
	if !slices.EqualFunc(m.keys, keys, bytes.Equal) {
		if err := m.Gossip.SetKeys(keys); err != nil {
			m.log.Error("gossip keys not changed", "err", err)
		}
		m.keys = keys
	}
	return errors.Join(err, m.store(v))
}

// store writes the record if it has changed.
func (m *Member) store(v state.View) error {
	next := *m.stored
	next.GossipKeys, next.Generation, next.Born = m.keys, v.Generation(), true
	if next.Equal(m.stored) || m.ended.Load() {
		return nil
	}
	if err := next.Write(m.cfg.Options.Paths.StateDir); err != nil {
		return err
	}
	m.stored = &next
	return nil
}
