package recovery

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
)

const (
	catchUpPoll = 50 * time.Millisecond
	// majorityTimeout is how long a majority is awaited; elections take about a second.
	majorityTimeout = 10 * time.Second
	// aloneInterval is the pause before it is checked again whether this node may serve alone.
	aloneInterval = 5 * time.Second
)

// AloneLog is the consensus log of this node.
type AloneLog interface {
	View() state.View
	Status() consensus.Status
	CaughtUp() bool
}

// AloneConfig is what an Alone works with.
type AloneConfig struct {
	Self    node.ID
	Log     AloneLog
	Contact *Contact
	// Dial fails if the member does not admit this node.
	Dial            func(ctx context.Context, id node.ID, proto string) (net.Conn, error)
	AwaitKeys       func(ctx context.Context, rev uint64) error // waits until the key files are as new as rev
	Arriving        func() bool                                 // whether this process took over a moment ago
	Waiting         func(step string)                           // gets what minions wait for
	End             func(reason string)                         // ends the membership, which begins anew and waits
	MajorityTimeout time.Duration                               // 0: 10 s
	Logger          *slog.Logger
}

// Alone lets a member that restarts without a majority serve minions with what it had, like one that kept running:
// sign-ins of accepted minions, requests, publications. Key files stay as they are and new keys stay pending until the
// cluster is found again. A member does so no longer than cluster_alone_limit after its last contact.
type Alone struct {
	cfg     AloneConfig
	serving atomic.Bool
}

// NewAlone returns an Alone.
func NewAlone(cfg AloneConfig) *Alone {
	cfg.MajorityTimeout = cmp.Or(cfg.MajorityTimeout, majorityTimeout)
	return &Alone{cfg: cfg}
}

// Serving says whether this node serves with what it had.
func (a *Alone) Serving() bool { return a.serving.Load() }

// Begin makes this node serve with what it has, until FindCluster ends it.
func (a *Alone) Begin() { a.serving.Store(true) }

// AwaitCluster waits until this node has what the cluster has decided, or begins to serve alone. Errors: that of ctx.
func (a *Alone) AwaitCluster(ctx context.Context) error {
	a.cfg.Logger.Info("waiting for consensus", "node", a.cfg.Self)
	for deadline := time.Now().Add(a.cfg.MajorityTimeout); !a.cfg.Log.CaughtUp(); {
		if time.Now().After(deadline) {
			recent := a.cfg.Contact.isRecent(time.Now(), time.Time{}, 0)
			if !recent {
				a.cfg.Waiting("looking for a majority of the cluster: " +
					"without one this node serves no longer than cluster_alone_limit")
			}
			if recent && a.IsAllowed(ctx) {
				a.Begin()
				a.cfg.Logger.Warn("no majority of the cluster can be reached: serving with the data of this node",
					"revision", a.cfg.Log.View().Rev())
				return nil
			}
			deadline = time.Now().Add(aloneInterval)
		}
		if !backoff.Sleep(ctx, catchUpPoll) {
			return ctx.Err()
		}
	}
	return nil
}

// KeepLimit ends the membership when this node has not been caught up with a majority for cluster_alone_limit, even if
// it has not restarted. By then the cluster may have removed this node, or deleted a key.
func (a *Alone) KeepLimit(ctx context.Context) {
	var contact time.Time
	for backoff.Poll(ctx, aloneInterval) {
		now := time.Now()
		if a.cfg.Log.CaughtUp() {
			contact = now
			continue
		}
		if a.cfg.Arriving() || a.cfg.Contact.isRecent(now, contact, now.Sub(contact)) {
			continue
		}
		a.cfg.Logger.Warn("no majority of the cluster was found for too long: this node stops serving minions",
			"dur", a.cfg.Contact.Limit)
		a.cfg.End("no longer serving alone")
		return
	}
}

// FindCluster ends serving alone when this node is caught up with a majority and the key files are as it says.
func (a *Alone) FindCluster(ctx context.Context) {
	if !a.Serving() {
		return
	}
	for !a.cfg.Log.CaughtUp() {
		if !backoff.Sleep(ctx, catchUpPoll) {
			return
		}
	}
	if err := a.cfg.AwaitKeys(ctx, a.cfg.Log.View().Rev()); err != nil {
		return // closing
	}
	a.serving.Store(false)
	a.cfg.Logger.Info("the cluster was found again", "node", a.cfg.Self)
}

// IsAllowed says whether this node has enough to serve, follows no leader, and is turned away by no member. The others
// may have removed it while it was down.
func (a *Alone) IsAllowed(ctx context.Context) bool {
	v := a.cfg.Log.View()
	if _, member := v.Member(a.cfg.Self); !member || v.Epochs().Current.N == 0 || a.cfg.Log.Status().HasQuorum {
		return false
	}
	var others []node.ID
	for _, mem := range v.Members() {
		if mem.ID != a.cfg.Self {
			others = append(others, mem.ID)
		}
	}
	return len(peerrpc.AskAll(ctx, others, a.checkAdmitted).Failed) == 0
}

// checkAdmitted returns an error if a member can be reached and does not let this node in.
func (a *Alone) checkAdmitted(ctx context.Context, id node.ID) (peerrpc.None, error) {
	c, err := a.cfg.Dial(ctx, id, peer.ProtoRaft) // bounded by the port
	if err == nil {
		_ = peer.Cut(c)
		return peerrpc.None{}, nil
	}
	op, isOp := errors.AsType[*net.OpError](err)
	unreachable := isOp && op.Op == "dial" ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	if unreachable || errors.Is(err, peer.ErrBusy) {
		return peerrpc.None{}, nil
	}
	a.cfg.Logger.Warn("a member refuses this node", "node", id, "err", err)
	return peerrpc.None{}, err
}
