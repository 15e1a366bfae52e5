package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/joining"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/localmaster"
)

// newJoiner builds what makes this node a member.
func (d *Daemon) newJoiner() *joining.Joiner {
	return joining.New(joining.Config{
		Self: d.id, Options: d.cfg, Identity: func() *peer.Identity { return d.identity },
		Master: masterIdentity{d}, Ports: d.sockets, Operations: d.op, Advertise: d.advertise, LocalAddrs: localAddrs,
		Joined: d.settled, Progress: d.joinProgress, Outcome: d.outcome, RestartMaster: d.restartMaster, Logger: d.log,
	})
}

// joinProgress says how far the running membership is.
func (d *Daemon) joinProgress() joining.Progress {
	m := d.current()
	if m == nil {
		return joining.Progress{}
	}
	st := m.Consensus.Status()
	p := joining.Progress{Running: true, CaughtUp: st.CaughtUp, Voter: m.isVoter(st), View: m.Consensus.View()}
	if s := m.svc; s != nil {
		p.HasMaster, p.Serving, p.WaitsFor = true, m.ready(), s.waitsFor()
		p.PortsHeld, p.KeysAdopted = s.held.Load(), s.dir.Settled()
	}
	return p
}

// newAdmission builds what admits other nodes. Its functions are called when the membership has been made.
func (m *member) newAdmission(record *membership.Record) *joining.Admission {
	return joining.NewAdmission(joining.AdmissionConfig{
		Self: m.d.id, ClusterID: record.ClusterID, Secret: m.d.cfg.Cluster.Secret, Public: m.public,
		Log:   func() joining.Log { return m.Consensus },
		Alive: func(id node.ID) bool { return m.Alive(id) }, Supported: func(level uint16) error { return m.Knows(level) },
		Decide: m.decide, Audit: func(cause string) state.Audit { return m.Audit(cause) },
		AwaitRoots: func(ctx context.Context) error { return m.svc.roots.AwaitFirst(ctx) }, Logger: m.log,
	})
}

// currentAdmission is that of the running membership, or an error for an operator.
func (d *Daemon) currentAdmission() (*joining.Admission, error) {
	if m := d.current(); m != nil {
		return m.admission, nil
	}
	return nil, d.errNoMember()
}

// operations holds a token while a bootstrap, join, restore, recovery or upgrade is under way.
type operations chan struct{}

// TryBegin implements joining.Operations.
func (o operations) TryBegin() bool {
	select {
	case o <- struct{}{}:
		return true
	default:
		return false
	}
}

// Begin implements joining.Operations.
func (o operations) Begin(ctx context.Context) error {
	select {
	case o <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// End implements joining.Operations.
func (o operations) End() { <-o }

// masterIdentity implements joining.Master. The master's configuration is read after the Joiner is built.
type masterIdentity struct{ d *Daemon }

// Identity implements joining.Master.
func (m masterIdentity) Identity() (private, public []byte, err error) {
	return m.d.masterKeys().Identity()
}

// Fingerprint implements joining.Master.
func (m masterIdentity) Fingerprint() (string, error) { return m.d.masterKeys().Fingerprint() }

// InstallIdentity implements joining.Master.
func (m masterIdentity) InstallIdentity(private, public []byte) (changed bool, backup string, err error) {
	return localmaster.InstallIdentity(m.d.master, private, public)
}

// StoreIdentity implements joining.Master.
func (m masterIdentity) StoreIdentity(private []byte) (bool, error) {
	return m.d.masterKeys().Store(private)
}

// PKIDir implements joining.Master.
func (m masterIdentity) PKIDir() string { return m.d.master.PkiDir }

// KeyStore implements joining.Master.
func (m masterIdentity) KeyStore() *mmapkeys.Geometry { return m.d.keyStore().Geometry() }
