package daemon

import (
	"saltclusterd/cmd/saltclusterd/minionview"
)

// newMinionView returns what this member knows of minions. A witness only knows what the others report.
func (m *member) newMinionView() *minionview.View {
	cfg := minionview.Config{Self: m.d.id, Others: m.OtherMasters, Client: m.Client(), Logger: m.log}
	if s := m.svc; s != nil {
		cfg.Service = &minionview.Service{
			StateDir: m.d.cfg.Paths.StateDir, Master: m.d.master, Keys: s.keys, Wall: s.wall, Subscribers: s.pub.Subscribers,
			Routes: m.Routes, Events: s.heard, Bus: s.bus, Term: m.term, Serving: s.opened.Load, HandedOver: s.handed.Load,
			PresenceEvents: m.d.cfg.Events.Presence, MinVersion: m.d.cfg.Edge.RequestMinimumVersion,
		}
	}
	return minionview.New(cfg)
}

// term returns the term of raft, and whether a majority can be reached.
func (m *member) term() (term uint64, quorum bool) {
	st := m.Consensus.Status()
	return st.Term, st.HasQuorum
}

// minionVerbs returns what operators ask about minions.
func (d *Daemon) minionVerbs() minionview.Verbs { return minionview.Verbs{Of: d.minionView} }

func (d *Daemon) minionView() (*minionview.View, error) {
	if m := d.current(); m != nil {
		return m.minions, nil
	}
	return nil, d.errNoMember()
}
