package daemon

import (
	"context"
	"path/filepath"

	"saltclusterd/cmd/saltclusterd/identity"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/signin"
)

// buildIdentity makes the part that changes the cluster's identity on this node.
func (m *member) buildIdentity() {
	d := m.d
	cfg := identity.Config{
		Self: d.id, Log: m.Consensus, Key: m.key, Fingerprint: m.fingerprint, MasterKeys: d.masterKeys(),
		PinsFile: filepath.Join(d.cfg.Paths.StateDir, "pins.json"),
		Alive:    m.Alive, Decide: m.decide, NoQuorum: m.noQuorum, Knows: m.Knows, NotOnWitness: d.notOnWitness,
		ReplaceAES: func(ctx context.Context) error {
			_, err := m.secrets.ReplaceAES(ctx)
			return err
		},
		Takeover: func(ctx context.Context, p admin.Progress) error {
			_, err := d.Upgrade(ctx, adminapi.UpgradeRequest{}, p)
			return err
		},
		Status: m.identityStatus, Client: m.Client(), Logger: m.log,
		Accelerate: func(key *saltcrypt.MasterKey) signin.SecondIdentity {
			accelerated, _ := d.accelerate(key)
			return accelerated
		},
	}
	if m.Record.Witness {
		cfg.WriteKeys = func(_, public []byte) error { return membership.WritePublicIdentity(d.cfg.Cluster.PKIDir, public) }
	} else {
		cfg.Master = identityMaster{m}
		cfg.WriteKeys = func(private, public []byte) error {
			return membership.WriteIdentity(d.cfg.Cluster.PKIDir, private, public)
		}
		cfg.ReadKeys = func() (private, public []byte, err error) {
			_, private, public, err = membership.ReadIdentity(d.cfg.Cluster.PKIDir)
			return private, public, err
		}
	}
	m.identity = identity.New(cfg)
}

// masterKeys returns the local master's own keys.
func (d *Daemon) masterKeys() identity.MasterKeys {
	return identity.MasterKeys{Master: d.master, Bank: func() *mmapkeys.Bank { return d.bank(mmapkeys.MasterKeys) }}
}

// identityStatus asks a node which identity it has.
func (m *member) identityStatus(ctx context.Context, id node.ID) (identity.Status, error) {
	if id == m.d.id {
		s := m.localStats()
		return identity.Status{Fingerprint: s.Identity, Shown: s.IdentityShown}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	s, err := m.nodeStats(ctx, id)
	return identity.Status{Fingerprint: s.Identity, Shown: s.IdentityShown}, err
}

// identityMaster implements identity.Master for a member with a service.
type identityMaster struct{ m *member }

// Options implements identity.Master.
func (i identityMaster) Options() *localmaster.Config { return i.m.followedMaster() }

// PubSigner implements identity.Master.
func (i identityMaster) PubSigner(options *localmaster.Config, public string) (signin.PubSigner, error) {
	return readPubSigner(i.m.d, options, public)
}

// Answer implements identity.Master.
func (i identityMaster) Answer(another *signin.Another) { i.m.svc.signin.Answer(another) }

// SignIn implements identity.Master.
func (i identityMaster) SignIn(ctx context.Context) error { return i.m.svc.intake.Learn(ctx) }

// Restart implements identity.Master.
func (i identityMaster) Restart(ctx context.Context, p admin.Progress) error {
	return i.m.d.restartMaster(ctx, p)
}
