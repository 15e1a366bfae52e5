package daemon

import (
	"context"
	"fmt"
	"net/netip"

	"saltclusterd/cmd/saltclusterd/identity"
	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/cmd/saltclusterd/recovery"
	"saltclusterd/cmd/saltclusterd/rsabackend"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/localmaster"
)

// readHost reads the identity of this node and the configuration of the master beside it.
func (d *Daemon) readHost(ctx context.Context) (err error) {
	if d.identity, err = peer.LoadIdentity(d.cfg.Paths.StateDir, d.id); err != nil {
		return fmt.Errorf("node identity: %w", err)
	}
	if d.witness() {
		return nil
	}
	if err := rsabackend.Check(d.cfg.SignIn.RSABackend); err != nil {
		return err
	}
	return d.readMaster(ctx)
}

// readMaster reads the configuration of the master.
func (d *Daemon) readMaster(ctx context.Context) (err error) {
	if d.master, err = masterlink.ReadConfig(ctx, d.cfg.Salt); err != nil {
		return err
	}
	if err := masterlink.CheckPorts(d.cfg, d.master); err != nil {
		d.log.Error("salt-master and saltclusterd want the same ports", "err", err)
	}
	d.inspector.LogFindings()
	return nil
}

// witness says whether this node is configured to be one.
func (d *Daemon) witness() bool { return d.cfg.Cluster.Witness }

// readOptions returns the options of the master as they were read, nil before.
func (d *Daemon) readOptions() *localmaster.Config { return d.master }

// keyStore returns the key store of the master's own.
func (d *Daemon) keyStore() masterlink.KeyStore {
	return masterlink.KeyStore{Master: d.master, Shared: d.shares()}
}

// masterKeys returns the local master's own keys, by the configuration that it has started with.
func (d *Daemon) masterKeys() identity.MasterKeys {
	return identity.MasterKeys{
		Master: d.inspector.Latest(), Bank: func() *mmapkeys.Bank { return d.keyStore().Bank(mmapkeys.MasterKeys) },
	}
}

func (d *Daemon) restartMaster(ctx context.Context, p admin.Progress) error {
	return masterlink.Restart(ctx, d.cfg.Salt.RestartCommand, p)
}

// advertise returns the address under which the others reach this node.
func (d *Daemon) advertise() (netip.AddrPort, error) { return membership.AdvertisedAddr(d.cfg) }

// newJoiner builds what makes this node a member.
func (d *Daemon) newJoiner() *joining.Joiner {
	return joining.New(joining.Config{
		Self: d.id, Options: d.cfg, Identity: func() *peer.Identity { return d.identity },
		Master: identity.LateMaster{
			Keys: d.masterKeys, Geometry: func() *mmapkeys.Geometry { return d.keyStore().Geometry() },
		},
		Ports: d.sockets, Operations: d.op, Advertise: d.advertise, LocalAddrs: membership.LocalAddrs,
		Joined: d.tenure.NotifyJoined, Progress: d.joinProgress, Outcome: d.outcome, RestartMaster: d.restartMaster,
		Logger: d.log,
	})
}

// joinProgress says how far the running membership is.
func (d *Daemon) joinProgress() joining.Progress {
	m := d.tenure.Current()
	if m == nil {
		return joining.Progress{}
	}
	now := m.Consensus.Status()
	p := joining.Progress{Running: true, CaughtUp: now.CaughtUp, Voter: m.IsVoter(), View: m.Consensus.View()}
	m.role.addJoinProgress(&p)
	return p
}

// newRecoverer makes what recovers, saves and restores a cluster.
func (d *Daemon) newRecoverer() *recovery.Recoverer {
	return recovery.New(recovery.Config{
		Self: d.id, Version: d.version, Options: d.cfg, Identity: func() *peer.Identity { return d.identity },
		Running: ofMember(d, (*member).recoverable), Joiner: d.joiner, Operations: d.op, Contact: d.contact,
		ClockPath: membership.ClockPath(d.cfg.Paths.StateDir), Advertise: d.advertise, LocalAddrs: membership.LocalAddrs,
		Joined: d.tenure.NotifyJoined, Serving: d.leadsAndServes, Outcome: d.outcome, Logger: d.log,
	})
}

// recoverable is what a recovery or a snapshot is made of.
func (m *member) recoverable() recovery.Membership {
	return recovery.Membership{
		Record: m.Record, Log: m.Consensus, Public: m.public, Address: m.Port.Advertise().String(), Alive: m.Alive,
		Describe: m.reports.Row,
		Clock:    func() hlc.Timestamp { return m.service().serials.Last() },
		Restart: func(offline func()) {
			m.haste.Store(true)
			m.Fail(&ending{"recovering", func() error {
				offline()
				return nil
			}})
		},
	}
}

// leadsAndServes says whether a membership that is not about to end leads and serves.
func (d *Daemon) leadsAndServes() bool {
	m := d.tenure.Current()
	return m != nil && !m.haste.Load() && m.Consensus.Serving() && m.role.ready()
}

// absence says why this node has no running membership.
func (d *Daemon) absence() operator.Absence { return operator.FindAbsence(d.cfg.Paths.StateDir) }

// errNoMember is the answer of a node without a running membership.
func (d *Daemon) errNoMember() error { return d.absence().Err() }

// outcome describes what bootstrap or join made of this node.
func (d *Daemon) outcome(context.Context) (adminapi.Outcome, error) {
	record, err := membership.ReadRecord(d.cfg.Paths.StateDir)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	out := adminapi.Outcome{Node: string(d.id), ClusterID: record.ClusterID, UUID: record.UUID, Role: adminapi.RoleLearner}
	if m := d.tenure.Current(); m != nil {
		out = m.outcome()
		m.role.addOutcome(&out)
	}
	out.Message = fmt.Sprintf("%s is a member of the cluster %s", d.id, record.ClusterID)
	return out, nil
}

// TakeLocks returns when this process has had every lock that serving minions takes. One that never returns from it
// does not serve any more, whatever else it does. It waits for no disk, no network and no other process.
func (d *Daemon) TakeLocks() {
	m := d.tenure.Current()
	if m == nil {
		return
	}
	m.Consensus.View()
	m.Routes()
	if m.role.ready() {
		s := m.service()
		s.ports.Publish.Stats()
		s.ports.Requests.Stats()
		s.drain.Draining()
	}
}
