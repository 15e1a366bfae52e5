package daemon

import (
	"context"
	"fmt"

	"saltclusterd/cmd/saltclusterd/recovery"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/signin"
)

// newContact makes what notes when this node last had everything that the cluster has decided.
func (d *Daemon) newContact() *recovery.Contact {
	return &recovery.Contact{StateDir: d.cfg.Paths.StateDir, Limit: d.cfg.Cluster.AloneLimit, Logger: d.log}
}

// newRecoverer makes what recovers, saves and restores a cluster.
func (d *Daemon) newRecoverer() *recovery.Recoverer {
	return recovery.New(recovery.Config{
		Self: d.id, Version: d.version, Options: d.cfg, Identity: func() *peer.Identity { return d.identity },
		Running: d.runningMembership, Joiner: d.joiner, Operations: d.op, Contact: d.contact,
		ClockPath: clockPath(d.cfg.Paths.StateDir), Advertise: d.advertise, LocalAddrs: localAddrs,
		Joined: d.settled, Serving: d.leadsAndServes, Outcome: d.outcome, Logger: d.log,
	})
}

// runningMembership is what a recovery or a snapshot is made of; the error is that of a node without a cluster.
func (d *Daemon) runningMembership() (recovery.Membership, error) {
	m := d.current()
	if m == nil {
		return recovery.Membership{}, d.errNoMember()
	}
	return recovery.Membership{
		Record: m.Record, Log: m.Consensus, Public: m.public, Address: m.Port.Advertise().String(), Alive: m.Alive,
		Describe: m.row,
		Clock:    func() hlc.Timestamp { return m.svc.clock.Last() },
		Restart: func(offline func()) {
			m.haste.Store(true)
			m.fail(&ending{"recovering", func() error {
				offline()
				return nil
			}})
		},
	}, nil
}

// leadsAndServes says whether a membership that is not about to end leads and serves.
func (d *Daemon) leadsAndServes() bool {
	m := d.current()
	return m != nil && !m.haste.Load() && m.Consensus.Serving() && m.ready()
}

// newFormer makes what asks the members that a recovery has dropped.
func (m *member) newFormer() *recovery.Former {
	return recovery.NewFormer(recovery.FormerConfig{
		ClusterID: m.Record.ClusterID, StateDir: m.d.cfg.Paths.StateDir, View: m.Consensus.View, Ask: m.Port.AskFormer,
		Interval: m.d.formerEvery, Logger: m.log,
	})
}

// keepContact is a duty of the member.
func (m *member) keepContact(ctx context.Context) { m.d.contact.Keep(ctx, m.Consensus.CaughtUp) }

// newAlone makes what lets this node serve without a majority.
func (s *service) newAlone() *recovery.Alone {
	m := s.m
	return recovery.NewAlone(recovery.AloneConfig{
		Self: m.d.id, Log: m.Consensus, Contact: m.d.contact, Dial: m.Port.Dial,
		AwaitKeys: func(ctx context.Context, rev uint64) error { return s.dir.WaitSynced(ctx, rev) },
		Arriving:  m.arriving, Waiting: func(step string) { s.step.Store(step) },
		End:             func(reason string) { m.fail(&ending{reason, func() error { return nil }}) },
		MajorityTimeout: m.d.aloneAfter, Logger: m.log,
	})
}

// keysSettled waits until key files are as new as rev.
func (s *service) keysSettled(ctx context.Context, rev uint64) error {
	if s.alone.Serving() {
		return fmt.Errorf("%w: the key directory waits for the cluster", signin.ErrNoQuorum)
	}
	return s.dir.WaitSynced(ctx, rev)
}

// keysSynced says whether there is nothing to wait for. While this node serves alone nothing newer comes.
func (s *service) keysSynced(rev uint64) bool { return s.alone.Serving() || s.dir.Synced(rev) }
