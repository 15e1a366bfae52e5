package joining

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// Master is the stock master beside this node. A Joiner on a witness does not use it.
type Master interface {
	// Identity returns the key pair that the master uses; fs.ErrNotExist: none yet. A pair that is only in its key
	// store is written to its files.
	Identity() (private, public []byte, err error)
	// Fingerprint returns the fingerprint of the key that the master uses, or "" without one. It changes nothing.
	Fingerprint() (string, error)
	// InstallIdentity writes a key pair to the master's files. The former private key is kept at backup.
	InstallIdentity(private, public []byte) (changed bool, backup string, err error)
	// StoreIdentity writes a key pair to the master's key store, if it has one.
	StoreIdentity(private []byte) (changed bool, err error)
	// Signs says that the master signs its public key (master_sign_pubkey).
	Signs() bool
	// InstallSigningKey writes what it signs with. It leaves another key there is, unless that is to be replaced; the
	// former one is kept at backup.
	InstallSigningKey(private []byte, replace bool) (changed bool, backup string, err error)
	// PKIDir returns the directory of its minion keys.
	PKIDir() string
	// KeyStore returns the layout of its key store, nil without one.
	KeyStore() *mmapkeys.Geometry
}

// Ports are the sockets of this process.
type Ports interface {
	// Reserve binds addresses for the part that will listen on them.
	Reserve(ctx context.Context, network string, addrs ...string) error
	// Release closes what was reserved and is not needed.
	Release(network string, addrs ...string)
}

// Operations admits one operation at a time that begins or replaces a membership.
type Operations interface {
	// TryBegin returns false if another operation is under way.
	TryBegin() bool
	// Begin waits for the end of another operation. Errors: that of ctx.
	Begin(context.Context) error
	End()
}

// Config is what a Joiner needs from the daemon.
type Config struct {
	Self       node.ID
	Options    *config.Config
	Identity   func() *peer.Identity // the certificate of this node
	Master     Master
	Ports      Ports
	Operations Operations

	Advertise  func() (netip.AddrPort, error) // the address by which others reach this node
	LocalAddrs func() []netip.Addr

	Joined        func()          // called when a membership was written
	Progress      func() Progress // of the running membership
	Outcome       func(context.Context) (adminapi.Outcome, error)
	RestartMaster func(context.Context, admin.Progress) error // by the configured command, if there is one

	Logger *slog.Logger
}

// Joiner makes this node a member. It implements admin.Joiner.
type Joiner struct {
	cfg Config

	mu      sync.Mutex
	problem error // see Problem
}

// New returns a Joiner.
func New(cfg Config) *Joiner { return &Joiner{cfg: cfg} }

// Bootstrap implements admin.Joiner.
func (j *Joiner) Bootstrap(
	ctx context.Context, r adminapi.BootstrapRequest, p admin.Progress,
) (adminapi.Outcome, error) {
	out, err := j.BecomeMember(ctx, r.Wait, r.Timeout, p, func() error {
		release, err := j.claimFounding(ctx)
		if err != nil {
			return err
		}
		if err := j.foundCluster(p); err != nil {
			release()
			return err
		}
		return nil
	})
	if err == nil && r.Wait {
		j.awaitKeys(ctx, p)
	}
	return out, err
}

// Join implements admin.Joiner.
func (j *Joiner) Join(ctx context.Context, r adminapi.JoinRequest, p admin.Progress) (adminapi.Outcome, error) {
	return j.BecomeMember(ctx, r.Wait, r.Timeout, p, func() error {
		return withCode(j.joinThrough(ctx, j.cfg.Options.PeerAddress(r.Peer), r, p))
	})
}

// BecomeMember runs act, which writes a membership, unless this node has one. It restarts the master and, with
// waitReady, waits until this node votes and serves minions.
func (j *Joiner) BecomeMember(
	ctx context.Context, waitReady bool, timeout time.Duration, p admin.Progress, act func() error,
) (adminapi.Outcome, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	if err := j.cfg.Operations.Begin(ctx); err != nil { // JoinPeers ends its operation after each try
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeBusy, "wait until it has ended, then repeat the command",
			"another bootstrap or join is under way")
	}
	defer j.cfg.Operations.End()
	if err := j.refuseMember(); err != nil {
		return adminapi.Outcome{}, err
	}
	if err := act(); err != nil {
		return adminapi.Outcome{}, err
	}
	if err := j.cfg.RestartMaster(ctx, p); err != nil {
		p("master", err.Error())
	}
	if waitReady {
		if err := j.awaitVoter(ctx, p); err != nil {
			return adminapi.Outcome{}, err
		}
	}
	return j.cfg.Outcome(ctx)
}

// refuseMember returns an error if this node has a membership.
func (j *Joiner) refuseMember() error {
	m, err := membership.ReadRecord(j.cfg.Options.Paths.StateDir)
	if err != nil {
		return err
	}
	if m == nil {
		return nil
	}
	return adminapi.Errorf(adminapi.CodeMember,
		"saltclusterctl members lists the nodes; if this node was just removed, wait some seconds and repeat the command",
		"this node is already a member of the cluster %q (%s)", m.ClusterID, m.UUID)
}
