package minionkeys

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/catchup"
	"saltclusterd/sidecar"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/signin"
)

// syncPoll is how often the key directory is asked how far it is.
const syncPoll = 20 * time.Millisecond

// Log is the consensus log (*consensus.Node).
type Log interface {
	View() state.View
	Propose(context.Context, ...state.Command) ([]state.Result, error)
	Barrier(context.Context) error
	Behind() time.Duration
	CaughtUp() bool
}

// Dir is the key directory of the local master (*keydir.Dir).
type Dir interface {
	Synced(rev uint64) bool
	WaitSynced(ctx context.Context, rev uint64) error
	Writing() (done, total int)
}

// Config configures Keys.
type Config struct {
	Log           Log
	Dir           Dir
	Seeds         *epochs.Seeds
	Audit         func(cause string) state.Audit
	AwaitRevision func(ctx context.Context, rev uint64) error
	// BeginEpoch puts the epoch of a view in force.
	BeginEpoch func(state.View) error
	// Alone says whether this node serves without a majority, so that the key directory waits for the cluster.
	Alone func() bool
	// Now is the time of the cluster, with which decisions are dated (consensus.Config).
	Now func() time.Time
}

// Keys are the minion keys of the cluster.
type Keys struct {
	cfg     Config
	changes keyChanges
}

// New returns the keys of a log.
func New(cfg Config) *Keys { return &Keys{cfg: cfg} }

// Accepted returns the accepted key of a minion.
func (k *Keys) Accepted(id string) (pub string, ok bool) {
	key, found := k.cfg.Log.View().Key(id)
	if !found || key.State != state.KeyAccepted {
		return "", false
	}
	return key.Pub, true
}

// IDs lists the minions with an accepted key.
func (k *Keys) IDs() []string {
	var ids []string
	k.cfg.Log.View().Keys(func(key state.Key) bool {
		if key.State == state.KeyAccepted {
			ids = append(ids, key.ID)
		}
		return true
	})
	return ids
}

// Known says whether a minion has a key in any state. One without counts as known while this node has not caught up,
// unless the key was deleted.
func (k *Keys) Known(id string) bool {
	v := k.cfg.Log.View()
	if _, ok := v.Key(id); ok {
		return true
	}
	if _, denied := v.Denied(id); denied {
		return true
	}
	_, deleted := v.Tombstone(id)
	return !deleted && (!v.Initialized() || !k.cfg.Log.CaughtUp())
}

// Life implements datacache.Keys.
func (k *Keys) Life(id string) uint64 {
	key, _ := k.cfg.Log.View().Key(id)
	return key.Again
}

// Session derives a minion's session key.
func (k *Keys) Session(id, pub string) saltcrypt.Key {
	return saltcrypt.DeriveSession(k.cfg.Seeds.Current().Secret, id, pub)
}

// Generation implements sidecar.Keys.
func (k *Keys) Generation() uint64 { return k.cfg.Seeds.Current().Number }

// FormerSessions implements sidecar.Keys.
func (k *Keys) FormerSessions(id, pub string) (keys []saltcrypt.Key) {
	for _, s := range k.cfg.Seeds.Former() {
		keys = append(keys, saltcrypt.DeriveSession(s.Secret, id, pub))
	}
	return keys
}

// CatchUp implements sidecar.Keys. The epoch that was found is in force when it returns.
func (k *Keys) CatchUp(ctx context.Context) error {
	if err := k.cfg.Log.Barrier(ctx); err != nil {
		if errors.Is(err, consensus.ErrBehind) || k.Behind() > 0 {
			return fmt.Errorf("%w: %w", sidecar.ErrBehind, err)
		}
		return err
	}
	return k.cfg.BeginEpoch(k.cfg.Log.View())
}

// Behind implements sidecar.Keys.
func (k *Keys) Behind() time.Duration { return k.cfg.Log.Behind() }

// TooFarBehind says whether this node has known for too long that it lacks something that the cluster has decided, a
// revocation perhaps, to give its subscribers anything.
func (k *Keys) TooFarBehind() bool { return k.Behind() >= sidecar.BehindTolerated }

// OnDisk implements sidecar.Keys: a key of a later revision than the key directory has written is waited for.
func (k *Keys) OnDisk(id string) (wait func(context.Context) error) {
	rev := k.cfg.Log.View().KeyRev(id)
	if k.cfg.Alone() || k.cfg.Dir.Synced(rev) { // while this node serves alone nothing newer comes
		return nil
	}
	return func(ctx context.Context) error { return k.awaitFiles(ctx, rev) }
}

// Settled waits until the local master's key files are as new as consensus is now.
func (k *Keys) Settled(ctx context.Context) error { return k.awaitFiles(ctx, k.cfg.Log.View().Rev()) }

func (k *Keys) awaitFiles(ctx context.Context, rev uint64) error {
	if k.cfg.Alone() {
		return fmt.Errorf("%w: the key directory waits for the cluster", signin.ErrNoQuorum)
	}
	return k.cfg.Dir.WaitSynced(ctx, rev)
}

// AwaitFiles waits until the key files are as the cluster has decided, and reports how far they are
// (catchup.Part.Await).
func (k *Keys) AwaitFiles(ctx context.Context, report func(catchup.Report)) error {
	rev := k.cfg.Log.View().Rev()
	for {
		done, total := k.cfg.Dir.Writing()
		report(catchup.Report{Done: int64(done), Total: int64(total), Note: "writing the key files"})
		poll, cancel := context.WithTimeout(ctx, syncPoll)
		err := k.cfg.Dir.WaitSynced(poll, rev)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// Standing implements signin.Keys.
func (k *Keys) Standing(id string) signin.Standing {
	v := k.cfg.Log.View()
	st := signin.Standing{Rev: v.KeyRev(id), Seen: v.Rev()}
	if key, ok := v.Key(id); ok {
		st.Pub, st.Known = key.Pub, true
		st.Accepted, st.Pending = key.State == state.KeyAccepted, key.State == state.KeyPending
	}
	return st
}

// Accept proposes the key that the local master accepted.
func (k *Keys) Accept(ctx context.Context, id, pub string, st signin.Standing) error {
	results, err := k.cfg.Log.Propose(ctx, state.KeySet{
		ID: id, State: state.KeyAccepted, Pub: pub, BaseRev: st.Rev, SeenRev: st.Seen, Audit: k.cfg.Audit("auto-accept"),
	})
	switch {
	case errors.Is(err, consensus.ErrNoLeader), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", signin.ErrNoQuorum, err)
	case err != nil:
		return err
	}
	if results[0].Code != state.Conflict {
		return results[0].Err()
	}
	// The key directory may have seen the master's file and proposed the same before; the leader knew it before this node.
	if err := k.cfg.AwaitRevision(ctx, results[0].Rev); err != nil {
		return fmt.Errorf("%w: %w", signin.ErrNoQuorum, err)
	}
	if now, ok := k.Accepted(id); ok && saltcrypt.CleanKey(now) == saltcrypt.CleanKey(pub) {
		return nil
	}
	return signin.ErrChanged
}

// KeyLog is the consensus log as the key directory needs it (keydir.KeyLog).
type KeyLog struct{ *consensus.Node }

// Propose implements keydir.KeyLog.
func (l KeyLog) Propose(ctx context.Context, cmds []state.Command) ([]state.Result, error) {
	return l.Node.Propose(ctx, cmds...)
}
