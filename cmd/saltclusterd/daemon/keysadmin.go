package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/keysadmin"
	"saltclusterd/sidecar/health"
)

// minionKeys returns the minion keys as operators see them, or the error of a node without a cluster.
func (d *Daemon) minionKeys() (*keysadmin.Keys, error) {
	m := d.current()
	if m == nil {
		return nil, d.errNoMember()
	}
	cfg := keysadmin.Config{
		Self: d.id, Log: m.Consensus, HeldChanged: func() { d.checks.Kick("keys") },
		AwaitRev: m.AwaitRevision, Audit: m.Audit, LacksQuorum: m.lacksQuorum, NoQuorum: m.noQuorum,
	}
	if m.svc != nil {
		cfg.Held = m.svc.dir
	}
	return keysadmin.New(cfg), nil
}

// keyVerbs returns what operators ask about minion keys.
func (d *Daemon) keyVerbs() keysadmin.Verbs { return keysadmin.Verbs{Of: d.minionKeys} }

// checkHeldKeys warns of keys that are held until an operator decides about them.
func (s *service) checkHeldKeys(context.Context) health.Result {
	return keysadmin.CheckHeld(s.m.d.id, s.dir.Held())
}
