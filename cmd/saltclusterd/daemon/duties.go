package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/saltcrypt"
)

const (
	// coalesceRevocations is how long a rotation waits for further removals: `salt-key -D` is one rotation, not a
	// thousand.
	coalesceRevocations = 250 * time.Millisecond
	// rotateRetry is the pause after a rotation that failed.
	rotateRetry = time.Second
	// minRotateWindow is the shortest time over which they are spread.
	minRotateWindow = 200 * time.Millisecond
)

// lead is the leader's duty: whoever lost an accepted key must not hear the next publication, so the AES key is rotated.
func (m *member) lead(ctx context.Context) {
	var gossip sync.WaitGroup
	defer gossip.Wait()
	gossip.Go(func() { m.keepGossipKey(ctx) })
	gossip.Go(func() { m.keepLevel(ctx) })
	gossip.Go(func() { m.keepSeed(ctx) })
	gossip.Go(func() { m.resignWhenShareHangs(ctx) })
	changed := m.cons.Watch(ctx)
	for {
		if v := m.cons.View(); v.RotationDue() && backoff.Sleep(ctx, coalesceRevocations) {
			if !m.rotate(ctx, v, state.ReasonRevoked) {
				continue
			}
		}
		aged, stop := m.aged()
		select {
		case <-aged:
			m.rotate(ctx, m.cons.View(), reasonAge)
		case <-ctx.Done():
			stop()
			return
		case _, ok := <-changed:
			if stop(); !ok {
				return
			}
		}
	}
}

// rotate asks for a new epoch; false after a failure and a pause.
func (m *member) rotate(ctx context.Context, v state.View, reason string) bool {
	_, err := m.cons.RotateEpoch(ctx, v.Epochs().Current.N, reason, newEpochKey)
	if err == nil || ctx.Err() != nil {
		return true
	}
	m.log.Error("cluster AES key not rotated", "reason", reason, "err", err)
	backoff.Sleep(ctx, rotateRetry)
	return false
}

func newEpochKey() (state.Secret, error) {
	key, err := saltcrypt.NewKey()
	if err != nil {
		return state.Secret{}, err
	}
	return state.SecretText(key.Text()), nil
}

// begin puts the epoch of v in force; the first time without a window.
func (s *service) begin(v state.View) error {
	if err := s.m.answerBoth(v); err != nil {
		s.m.log.Error("sign-ins are answered under one identity only", "err", err)
	}
	cur := v.Epochs().Current
	if cur.N == 0 {
		return nil
	}
	key, err := saltcrypt.ParseKey(cur.Key.Text())
	if err != nil {
		return fmt.Errorf("epoch %d: %w", cur.N, err)
	}
	first := s.epochs.Current() == nil
	seeds := v.Seeds() // before the epoch: who signs in for that one gets the session key of this one
	s.keys.seeds.Begin(seedOf(seeds.Current), seedOf(seeds.Previous), s.seedWindowFor(seeds.Current, time.Now()))
	news, err := s.epochs.Begin(epochs.Epoch{Number: cur.N, Key: key, Rev: cur.Rev, RevokedRev: v.RevokedRev()}, s.m.d.cfg.Edge.RotateWindow)
	if err != nil {
		return err
	}
	_, prev := s.epochs.Sealing()
	window := s.rotateWindow(prev != nil)
	if news && !first {
		s.m.log.Info("cluster AES key rotated", "epoch", cur.N, "reason", cur.Reason, "dur", window)
		s.unmoved.Store(true)
	}
	return s.move(window)
}

func seedOf(s state.Seed) epochs.Seed { return epochs.Seed{Number: s.N, Secret: s.Key.Bytes()} }

// seedWindow is how long session keys of the generation before are good: until the last subscriber of any node has been moved. A minion that was
// not reached by then hears "bad load", signs in and repeats what it asked.
func (s *service) seedWindow() time.Duration {
	window := s.m.d.cfg.Edge.RotateWindow
	return window + rotationLate(window) + seedSpare
}

// seedWindowFor is how long the generation before cur is good from now on. A process that has just started does not begin the window of a
// rotation anew; one that runs goes by when it hears of the rotation, for the clock of the node that decided may be off.
func (s *service) seedWindowFor(cur state.Seed, now time.Time) time.Duration {
	if s.keys.seeds.Current().Number > 0 {
		return s.seedWindow()
	}
	return remainingWindow(s.seedWindow(), cur.At, now)
}

// remainingWindow is what remains, at now, of a window that a decision began at the time at, in Unix milliseconds: at most all of it, also
// when the clock is behind the decision.
func remainingWindow(window time.Duration, at int64, now time.Time) time.Duration {
	return min(max(window-now.Sub(time.UnixMilli(at)), 0), window)
}

// seedSpare is for nodes that learn of a rotation later than others, and for the sign-ins of the last minions.
const seedSpare = 2 * time.Minute

// rotationLate is how much longer than its window a rotation may take when sign-ins wait.
func rotationLate(window time.Duration) time.Duration { return max(3*window, rotateLate) }

// move makes the subscribers sign in again after a rotation. What fails stays due for the next call.
func (s *service) move(window time.Duration) error {
	if !s.unmoved.Swap(false) {
		return nil
	}
	nudge, err := s.hub.Nudge()
	if err != nil {
		s.unmoved.Store(true)
		return fmt.Errorf("move subscribers to the new key: %w", err)
	}
	how := edge.Rotation{Window: window, Nudge: nudge}
	if _, prev := s.epochs.Sealing(); prev == nil { // what is published now, those who have not moved cannot read
		how.Hold = true
		how.Busy = func() bool { return s.signin.Backlog() > rotateBacklog }
		how.Late = rotationLate(window)
	}
	s.pub.Rotate(how)
	return nil
}

// rotateBacklog is how long sign-ins may wait before a rotation lets its next subscribers stay a little longer. A stock minion
// asks again after five seconds.
const rotateBacklog = time.Second

// rotateLate is the least of rotationLate.
const rotateLate = 2 * time.Minute

const (
	// rotationPatience is how long a publication waits for a rotation that is due. Without a quorum none comes, and the
	// masters' work must go on.
	rotationPatience = time.Second
	rotationPoll     = 5 * time.Millisecond
)

// awaitRotation holds a publication back while the AES key in force is one that a removed minion knows.
func (s *service) awaitRotation() {
	v := s.m.cons.View()
	if s.rotated(v) || s.gaveUp.Load() == v.RevokedRev() {
		return
	}
	for end := time.Now().Add(rotationPatience); time.Now().Before(end); {
		if !backoff.Sleep(s.ctx, rotationPoll) || s.rotated(s.m.cons.View()) {
			return
		}
	}
	s.gaveUp.Store(v.RevokedRev()) // the next ones do not wait for this removal again
	s.m.log.Warn("published before the cluster AES key was rotated", "err", "no rotation in time")
}

// rotated says whether nobody whose key was taken away knows the key in force here.
func (s *service) rotated(v state.View) bool {
	cur := s.epochs.Current()
	return !v.RotationDue() && cur != nil && cur.Number >= v.Epochs().Current.N
}

// rotateWindow is how long this node's subscribers take to move to a new epoch: as long as the operator allows while the one before seals, too,
// otherwise no longer than their sign-ins need.
func (s *service) rotateWindow(both bool) time.Duration {
	need := spread(s.pub.Stats().Subscribers, s.signin.Rate())
	limit := s.m.d.cfg.Edge.RotateWindow
	if both { // nobody is in a hurry
		need = limit
	}
	return min(max(need, minRotateWindow), limit)
}

// follow keeps epoch and publication links up to date with consensus while the service is open.
func (s *service) follow(ctx context.Context) {
	changed := s.m.cons.Watch(ctx)
	for {
		v := s.m.cons.View()
		var again <-chan time.Time
		if err := s.begin(v); err != nil {
			s.m.log.Error("epoch not begun", "err", err)
			again = time.After(rotateRetry)
		}
		s.setPeers(v)
		select {
		case _, ok := <-changed:
			if !ok {
				return
			}
		case <-again:
		}
	}
}

// setPeers makes publication links to all other members.
func (s *service) setPeers(v state.View) {
	var peers []node.ID
	for _, mem := range v.Members() {
		if !mem.Witness {
			peers = append(peers, mem.ID)
		}
	}
	s.hub.SetPeers(peers)
}

// masterUp notes that the local master (re)appeared, or goes on after it stood still: it may be another process, with a new AES key and
// workers that have forgotten all sessions.
func (s *service) masterUp() {
	s.sessions.Reset()
	s.umask.NotifyStarted()
	s.native.Returns.MasterStarted()
	s.proxy.NotifyMasters()
	select {
	case s.learn <- struct{}{}:
	default:
	}
}

// learnRetry is the pause after a sign-in at the local master that failed.
const learnRetry = 2 * time.Second

// keepLearning learns the local master's key whenever it may have changed, so that the first publication does not wait.
func (s *service) keepLearning(ctx context.Context) {
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.learn:
		}
		s.rereadOptions()
		for s.req.Up() {
			err := s.intake.Learn(ctx)
			s.m.gossip.UpdateMeta()
			s.m.lookAtRoutes()
			if err == nil {
				said = ""
				s.m.log.Info("signed in at the local master")
				break
			}
			if text := err.Error(); text != said { // it may need an operator, and is tried every two seconds
				said = text
				s.m.log.Warn("not signed in at the local master", "err", err)
			}
			if !backoff.Sleep(ctx, learnRetry) {
				return
			}
		}
	}
}
