package removal

import (
	"context"
	"fmt"
	"log/slog"
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
	// standingEvery is how often a node without a leader asks the others about itself.
	standingEvery = time.Second
	// standingRarely is how often it asks members that it does not see while it has a leader.
	standingRarely = 10 * time.Second
)

// WatchLog is the consensus log of this node.
type WatchLog interface {
	View() state.View
	Status() consensus.Status
	Detached() bool // whether this node was removed, as its log says
}

// Roster is the saved list of members, which the peer port trusts.
type Roster interface {
	Lookup(node.ID) (node.Entry, bool)
	Entries() []node.Entry
	Rev() uint64
}

// WatchConfig is what a Watch works with.
type WatchConfig struct {
	Self       node.ID
	Log        WatchLog
	Roster     Roster
	Generation uint64 // of the cluster, as it was stored when the membership was opened
	Alive      func(node.ID) bool
	Ask        func(context.Context, node.ID) (peer.Standing, error) // asks a member what its roster says of this node
	End        func(reason string)                                   // ends the membership for good
	Logger     *slog.Logger
}

// Watch notices that this node is not a member any more, whether it ran when it was removed or not. The log says so if
// it still reached this node. Else the members that do not admit it say so.
type Watch struct {
	cfg  WatchConfig
	left atomic.Pointer[string] // why this node is not a member any more
}

// NewWatch returns a Watch.
func NewWatch(cfg WatchConfig) *Watch { return &Watch{cfg: cfg} }

// Left returns why this node is not a member any more; ok is false while it is one.
func (w *Watch) Left() (reason string, ok bool) {
	if left := w.left.Load(); left != nil {
		return *left, true
	}
	return "", false
}

// Answer tells a node what the roster says of it (peer.Config.Standing).
func (w *Watch) Answer(id node.ID, fp node.Fingerprint) peer.Standing {
	e, ok := w.cfg.Roster.Lookup(id)
	return peer.Standing{
		Member: ok && e.Fingerprint == fp, Rev: w.cfg.Roster.Rev(), Generation: w.Generation(),
	}
}

// Generation returns the generation of the cluster, even before consensus has it.
func (w *Watch) Generation() uint64 { return max(w.cfg.Generation, w.cfg.Log.View().Generation()) }

// isRemoved says whether an answer proves that the node that got it is not a member any more. This node has rev and
// generation.
func isRemoved(s peer.Standing, rev, generation uint64) bool {
	return !s.Member && (s.Generation > generation || s.Generation == generation && s.Rev > rev)
}

// Run ends the membership when this node was removed.
func (w *Watch) Run(ctx context.Context) {
	lastAsked := time.Now()
	for backoff.Poll(ctx, standingEvery) {
		if w.cfg.Log.Detached() {
			w.endMembership("this node was removed from the cluster")
			return
		}
		st := w.cfg.Log.Status()
		if st.HasQuorum && time.Since(lastAsked) < standingRarely {
			continue
		}
		lastAsked = time.Now()
		if reason := w.askMembers(ctx, st.HasQuorum); reason != "" && ctx.Err() == nil {
			w.endMembership(reason)
			return
		}
	}
}

// askMembers asks the other members, or only those that gossip does not see. It returns why this node is not a member
// any more, or "".
func (w *Watch) askMembers(ctx context.Context, unseenOnly bool) (reason string) {
	rev, generation := max(w.cfg.Log.View().Rev(), w.cfg.Roster.Rev()), w.Generation()
	var ids []node.ID
	for _, e := range w.cfg.Roster.Entries() {
		if e.ID != w.cfg.Self && !(unseenOnly && w.cfg.Alive(e.ID)) {
			ids = append(ids, e.ID)
		}
	}
	answers := peerrpc.AskAll(ctx, ids, w.cfg.Ask)
	for _, id := range ids {
		switch s, ok := answers.Of[id]; {
		case !ok || !isRemoved(s, rev, generation):
		case s.Generation > generation:
			reason = fmt.Sprintf("the cluster was recovered without this node, according to %s", id)
		default:
			reason = fmt.Sprintf("this node was removed from the cluster, according to %s", id)
		}
	}
	return reason
}

func (w *Watch) endMembership(reason string) {
	w.cfg.Logger.Warn("this node is no longer a member: it stops serving minions", "node", w.cfg.Self, "reason", reason)
	w.left.Store(&reason)
	w.cfg.End(reason)
}

// DescribeLostLog says why the membership of a node without its consensus log ends. Such a node must not vote again,
// and a founder must not found a second cluster. The other members have everything that was decided.
func DescribeLostLog(what string, self node.ID) string {
	return fmt.Sprintf("%s, and a node that has lost its votes must not continue: on another node run "+
		"saltclusterctl remove %s, then join again; if no other node is left, restore a snapshot", what, self)
}
