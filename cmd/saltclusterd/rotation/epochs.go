package rotation

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/saltcrypt"
)

const (
	// minRotateWindow is the shortest time over which subscribers are moved.
	minRotateWindow = 200 * time.Millisecond
	// rotateBacklog is the backlog of sign-ins at which a rotation pauses. A stock minion repeats a sign-in after
	// five seconds.
	rotateBacklog = time.Second
	// rotateLate is the least of lateWindow.
	rotateLate = 2 * time.Minute
	// seedSpare is for nodes that learn of a rotation later than others, and for the sign-ins of the last minions.
	seedSpare = 2 * time.Minute
	// signInShare is the part of this node's sign-in rate that a rotation uses. Minions sign in for other reasons as
	// well.
	signInShare = 0.7
	// rotationTimeout is how long a publication waits for a rotation that is due. Without a quorum none comes, and
	// publications must not stop.
	rotationTimeout = time.Second
	// decidedTimeout is how long it waits while a majority can decide: the disks are slow, or the leader has just died.
	decidedTimeout = 5 * time.Second
	rotationPoll   = 5 * time.Millisecond
)

// Publisher is the port that subscribers are connected to (edge.PubEdge).
type Publisher interface {
	Stats() edge.PubStats
	Rotate(how edge.Rotation)
}

// SignIns is the service that answers sign-ins (signin.Service).
type SignIns interface {
	Rate() float64 // per second; 0: not measured
	Backlog() time.Duration
}

// EpochsConfig configures Epochs.
type EpochsConfig struct {
	View      func() state.View
	Watch     func(context.Context) <-chan struct{} // changes of the view
	Manager   *epochs.Manager
	Seeds     *epochs.Seeds
	Publisher Publisher
	SignIns   SignIns
	Nudge     func() ([]byte, error) // makes a message that has a minion sign in
	// AnswerBoth has sign-ins answered under both identities while a view says so.
	AnswerBoth   func(state.View) error
	SetPeers     func([]node.ID) // makes publication links to all other members that have a master
	CaughtUp     func() bool     // with a majority that can decide; nil: no
	RotateWindow time.Duration   // as operators set it
	Logger       *slog.Logger
}

// Epochs puts the AES key and the session seed that are agreed on in force on this node, and moves its subscribers to
// them.
type Epochs struct {
	cfg     EpochsConfig
	unmoved atomic.Bool   // subscribers have not been moved to the epoch in force
	gaveUp  atomic.Uint64 // revision of the removal whose rotation no publication waits for any more
}

// NewEpochs returns an Epochs without an epoch.
func NewEpochs(cfg EpochsConfig) *Epochs { return &Epochs{cfg: cfg} }

// epochRetry is the pause after an epoch could not be put in force.
const epochRetry = time.Second

// Follow keeps the epoch and the links for publications up to date with consensus until ctx ends.
func (e *Epochs) Follow(ctx context.Context) {
	changed := e.cfg.Watch(ctx)
	for {
		v := e.cfg.View()
		var again <-chan time.Time
		if err := e.Begin(v); err != nil {
			e.cfg.Logger.Error("epoch not begun", "err", err)
			again = time.After(epochRetry)
		}
		var peers []node.ID
		for _, mem := range v.Members() {
			if !mem.Witness {
				peers = append(peers, mem.ID)
			}
		}
		e.cfg.SetPeers(peers)
		select {
		case _, ok := <-changed:
			if !ok {
				return
			}
		case <-again:
		}
	}
}

// Begin puts the identities, the epoch and the seed of v in force. The first epoch has no window.
func (e *Epochs) Begin(v state.View) error {
	if err := e.cfg.AnswerBoth(v); err != nil {
		e.cfg.Logger.Error("sign-ins are answered under one identity only", "err", err)
	}
	cur := v.Epochs().Current
	if cur.N == 0 {
		return nil
	}
	key, err := saltcrypt.ParseKey(cur.Key.Text())
	if err != nil {
		return fmt.Errorf("epoch %d: %w", cur.N, err)
	}
	first := e.cfg.Manager.Current() == nil
	seeds := v.Seeds() // before the epoch: a minion that signs in for the epoch gets the session key of the seed
	e.cfg.Seeds.Begin(seedOf(seeds.Current), seedOf(seeds.Previous), e.seedWindowFor(seeds.Current, time.Now()))
	next := epochs.Epoch{Number: cur.N, Key: key, Rev: cur.Rev, RevokedRev: v.RevokedRev()}
	news, err := e.cfg.Manager.Begin(next, e.cfg.RotateWindow)
	if err != nil {
		return err
	}
	_, prev := e.cfg.Manager.Sealing()
	window := e.rotateWindow(prev != nil)
	if news && !first {
		e.cfg.Logger.Info("cluster AES key rotated", "epoch", cur.N, "reason", cur.Reason, "dur", window)
		e.unmoved.Store(true)
	}
	return e.moveSubscribers(window)
}

func seedOf(s state.Seed) epochs.Seed { return epochs.Seed{Number: s.N, Secret: s.Key.Bytes()} }

// seedWindow returns how long session keys of the former generation are accepted: until the last subscriber of any
// node has been moved. Later requests are answered with "bad load", and the minion signs in and repeats them.
func (e *Epochs) seedWindow() time.Duration {
	return e.cfg.RotateWindow + lateWindow(e.cfg.RotateWindow) + seedSpare
}

// seedWindowFor returns how long the generation before cur is accepted from now on. A process that has just started
// continues the window of the rotation. A running one starts a whole window, because the clock of the node that
// decided may be wrong.
func (e *Epochs) seedWindowFor(cur state.Seed, now time.Time) time.Duration {
	if e.cfg.Seeds.Current().Number > 0 {
		return e.seedWindow()
	}
	return remainingWindow(e.seedWindow(), cur.At, now)
}

// remainingWindow returns what remains at now of a window that began at the given time in Unix milliseconds. It is at
// most the whole window, even if the clock is behind the decision.
func remainingWindow(window time.Duration, at int64, now time.Time) time.Duration {
	return min(max(window-now.Sub(time.UnixMilli(at)), 0), window)
}

// lateWindow returns how much longer than its window a rotation may take while sign-ins wait.
func lateWindow(window time.Duration) time.Duration { return max(3*window, rotateLate) }

// moveSubscribers makes the subscribers sign in again after a rotation. After a failure the next call repeats it.
func (e *Epochs) moveSubscribers(window time.Duration) error {
	if !e.unmoved.Swap(false) {
		return nil
	}
	nudge, err := e.cfg.Nudge()
	if err != nil {
		e.unmoved.Store(true)
		return fmt.Errorf("move subscribers to the new key: %w", err)
	}
	how := edge.Rotation{Window: window, Nudge: nudge}
	if _, prev := e.cfg.Manager.Sealing(); prev == nil { // the others cannot read what is published now
		how.Hold = true
		how.Busy = func() bool { return e.cfg.SignIns.Backlog() > rotateBacklog }
		how.Late = lateWindow(window)
	}
	e.cfg.Publisher.Rotate(how)
	return nil
}

// AwaitRotation holds a publication back while the AES key in force is one that a removed minion knows.
func (e *Epochs) AwaitRotation(ctx context.Context) {
	v := e.cfg.View()
	if e.isRotated(v) || e.gaveUp.Load() == v.RevokedRev() {
		return
	}
	for start := time.Now(); ; {
		waited := time.Since(start)
		decides := e.cfg.CaughtUp != nil && e.cfg.CaughtUp()
		if waited >= decidedTimeout || waited >= rotationTimeout && !decides {
			break
		}
		if !backoff.Sleep(ctx, rotationPoll) || e.isRotated(e.cfg.View()) {
			return
		}
	}
	e.gaveUp.Store(v.RevokedRev()) // later publications do not wait for this removal again
	e.cfg.Logger.Warn("published before the cluster AES key was rotated", "err", "no rotation in time")
}

// isRotated tells whether the AES key in force here is unknown to all minions whose key was taken away.
func (e *Epochs) isRotated(v state.View) bool {
	cur := e.cfg.Manager.Current()
	return !v.RotationDue() && cur != nil && cur.Number >= v.Epochs().Current.N
}

// rotateWindow returns how long this node's subscribers take to move to a new epoch: rotate_window while the former
// epoch seals as well, otherwise no longer than their sign-ins need.
func (e *Epochs) rotateWindow(both bool) time.Duration {
	need, limit := e.cfg.RotateWindow, e.cfg.RotateWindow
	if !both {
		need = signInTime(e.cfg.Publisher.Stats().Subscribers, e.cfg.SignIns.Rate())
	}
	return min(max(need, minRotateWindow), limit)
}

// signInTime returns how long n minions need to sign in at the measured rate per second.
func signInTime(n int, rate float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(n) / (rate * signInShare) * float64(time.Second))
}
