package recovery

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/netip"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/hlc"
)

// viewTimeout is how long a snapshot waits for the newest decisions of the others.
const viewTimeout = 5 * time.Second

// Log is the consensus log.
type Log interface {
	View() state.View
	Status() consensus.Status
	LocalStats() consensus.PeerStats
	Barrier(context.Context) error
}

// Membership is the running membership.
type Membership struct {
	Record   *membership.Record
	Log      Log
	Public   string // clean text of the cluster's public key
	Address  string // by which others reach this node
	Alive    func(node.ID) bool
	Describe func(state.Member, consensus.Status) adminapi.Member
	Clock    func() hlc.Timestamp // the newest serial; not called on a witness
	// Restart ends the membership without waiting for minions, calls offline when all parts are closed, and begins the
	// membership anew.
	Restart func(offline func())
}

// Operations admits one operation at a time that begins or replaces a membership.
type Operations interface {
	TryBegin() bool // returns false if another operation is under way
	End()
}

// Joiner makes this node a member.
type Joiner interface {
	// BecomeMember runs act, which writes a membership, unless this node has one.
	BecomeMember(
		ctx context.Context, waitReady bool, timeout time.Duration, p admin.Progress, act func() error,
	) (adminapi.Outcome, error)
	// ClaimRestore refuses to restore a cluster beside members of it. The caller releases the peer port when it fails.
	ClaimRestore(context.Context, state.View) (release func(), err error)
	// InstallIdentity makes the cluster's key pair that of the local master.
	InstallIdentity(private, public []byte, p admin.Progress) error
}

// Config is what a Recoverer needs from the daemon.
type Config struct {
	Self       node.ID
	Version    string // of saltclusterd
	Options    *config.Config
	Identity   func() *peer.Identity      // the certificate of this node
	Running    func() (Membership, error) // the error is for operators: there is none
	Joiner     Joiner
	Operations Operations
	Contact    *Contact
	ClockPath  string // where the clock of serials is stored

	Advertise  func() (netip.AddrPort, error) // the address by which others reach this node
	LocalAddrs func() []netip.Addr
	Joined     func()      // called when a membership was written
	Serving    func() bool // whether a membership that is not about to end leads and serves minions
	Outcome    func(context.Context) (adminapi.Outcome, error)

	Logger *slog.Logger
}

// Recoverer makes a cluster of what one node has. It implements admin.Recoverer.
type Recoverer struct{ cfg Config }

// New returns a Recoverer.
func New(cfg Config) *Recoverer { return &Recoverer{cfg} }

// refuseWitness refuses what needs the cluster's identity.
func (r *Recoverer) refuseWitness(what string) error {
	if !r.cfg.Options.Cluster.Witness {
		return nil
	}
	return membership.WitnessCannot(what)
}

func newGossipKey() []byte {
	key := make([]byte, membership.GossipKeySize)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return key
}

// describeSurvivor is what the consensus log of a cluster of one begins with.
func (r *Recoverer) describeSurvivor(self node.Entry, gossipKey []byte, cause string) state.Recovery {
	return state.Recovery{
		Survivor: state.Member{
			ID: self.ID, Addr: self.Addr.String(), Fingerprint: string(self.Fingerprint), Weight: membership.DefaultWeight,
		},
		GossipKey: state.NewSecret(gossipKey),
		Audit:     state.Audit{By: r.cfg.Self, At: time.Now().UnixMilli(), Cause: cause},
	}
}

// storeMembership makes the files beside the consensus log fit a cluster of one. Consensus would do the same at the
// next start.
func (r *Recoverer) storeMembership(
	rec *membership.Record, v state.View, self node.Entry, gossipKey []byte,
) error {
	next := *rec
	next.GossipKeys, next.Generation, next.Born = [][]byte{gossipKey}, v.Generation(), true
	return membership.Store(r.cfg.Options.Paths.StateDir, &next, v.Rev(), []node.Entry{self})
}
