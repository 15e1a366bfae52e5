package daemon

import (
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/removal"
)

// newRemover makes what removes members; a witness has it as well.
func (m *member) newRemover() *removal.Remover {
	return removal.New(removal.Config{
		Self: m.d.id, ClusterID: m.Record.ClusterID, UUID: m.Record.UUID, Log: m.Consensus, Alive: m.Alive,
		Drains: m.drains, Transfer: m.leadership.Transfer, Audit: m.Audit, Left: m.standing.Left,
		Running: func() bool { return m.d.current() == m }, Logger: m.log,
	})
}

// newStanding makes what notices that this node was removed.
func (m *member) newStanding() *removal.Watch {
	return removal.NewWatch(removal.WatchConfig{
		Self: m.d.id, Log: m.Consensus, Roster: m.Roster, Generation: m.Record.Generation, Alive: m.Alive,
		Ask: m.Port.AskStanding,
		End: func(reason string) {
			m.Leave()
			m.fail(m.d.endForGood(reason))
		},
		Logger: m.log,
	})
}

// noQuorum makes the error that operators get when no majority can decide.
func (m *member) noQuorum(err error) error { return m.remover.NoQuorum(err) }

// currentRemover returns the error of a node without a cluster.
func (d *Daemon) currentRemover() (*removal.Remover, error) {
	if m := d.current(); m != nil {
		return m.remover, nil
	}
	return nil, d.errNoMember()
}

// lostLog ends the membership of a node without its consensus log.
func (d *Daemon) lostLog(what string) error {
	reason := removal.DescribeLostLog(what, d.id)
	d.log.Error("this node is not a member any more", "node", d.id, "reason", reason)
	return d.endForGood(reason)
}

// endForGood ends a membership and makes this node one that was removed.
func (d *Daemon) endForGood(reason string) error {
	return &ending{reason, func() error { return d.forget(reason) }}
}

// forget ends the membership on disk; its parts are closed.
func (d *Daemon) forget(reason string) error {
	r, err := membership.ReadRecord(d.cfg.Paths.StateDir)
	if err != nil || r == nil {
		return err
	}
	if err := r.End(d.cfg.Paths.StateDir, reason); err != nil {
		return err
	}
	d.mu.Lock()
	d.joined = make(chan struct{})
	d.mu.Unlock()
	return nil
}
