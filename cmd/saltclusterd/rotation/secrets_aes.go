package rotation

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/saltcrypt"
)

// Reasons of an epoch beside state.ReasonRevoked. With these, minions have rotate_window to move.
const (
	reasonAge      = "age"
	reasonOperator = "operator"
	reasonRemoved  = "member removed"
)

const (
	// coalesceRevocations is how long a rotation waits for further removals: `salt-key -D` is one rotation, not a
	// thousand.
	coalesceRevocations = 250 * time.Millisecond
	// rotateRetry is the pause after a rotation that failed.
	rotateRetry = time.Second
)

// KeepAES is a duty of the leader. It replaces the AES key when an accepted key was taken away, so that its owner
// cannot read the next publication, and when the key in force is too old.
func (s *Secrets) KeepAES(ctx context.Context) {
	changed := s.cfg.Log.Watch(ctx)
	for {
		if v := s.cfg.Log.View(); v.RotationDue() && backoff.Sleep(ctx, coalesceRevocations) {
			if !s.replaceEpoch(ctx, v, state.ReasonRevoked) {
				continue
			}
		}
		aged, stop := s.startAgeTimer()
		select {
		case <-aged:
			s.replaceEpoch(ctx, s.cfg.Log.View(), reasonAge)
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

// replaceEpoch proposes a new epoch. After a failure it pauses and returns false.
func (s *Secrets) replaceEpoch(ctx context.Context, v state.View, reason string) bool {
	_, err := s.cfg.Log.RotateEpoch(ctx, v.Epochs().Current.N, reason, newEpochKey)
	if err == nil || ctx.Err() != nil {
		return true
	}
	s.cfg.Logger.Error("cluster AES key not rotated", "reason", reason, "err", err)
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

// ReplaceAES makes the cluster agree on a new AES key, for an operator.
func (s *Secrets) ReplaceAES(ctx context.Context) (state.Epoch, error) {
	ctx, cancel := context.WithTimeout(ctx, decidedWithin)
	defer cancel()
	return s.cfg.Log.RotateEpoch(ctx, s.cfg.Log.View().Epochs().Current.N, reasonOperator, newEpochKey)
}

// rotateAES replaces the AES key. Each node moves its minions to the new one over rotate_window.
func (s *Secrets) rotateAES(ctx context.Context, r adminapi.RotateRequest, p admin.Progress) (adminapi.Outcome, error) {
	window := s.cfg.RotateWindow
	if r.DryRun {
		return adminapi.Outcome{
			Message: fmt.Sprintf("AES key number %d would be in force, and minions moved to it within %s",
				s.cfg.Log.View().Epochs().Current.N+1, window),
			Next: s.cfg.describeDown(laterByLog),
		}, nil
	}
	p("rotate", "asking the cluster for a new AES key")
	epoch, err := s.ReplaceAES(ctx)
	if s.cfg.Undecided(ctx, err) {
		return adminapi.Outcome{}, s.cfg.NoQuorum(err)
	}
	if err != nil {
		return adminapi.Outcome{}, err
	}
	return adminapi.Outcome{
		Message: fmt.Sprintf("AES key number %d is in force; minions are moved to it within %s", epoch.N, window),
		Next:    s.cfg.describeDown(laterByLog),
	}, nil
}

// maxSeedAge is the age at which the session seed is replaced, and the AES key with it, whatever RotateInterval is.
// Until then a recorded request can be repeated. Session keys of stock masters have the same age (publish_session).
const maxSeedAge = 24 * time.Hour

// untilAged returns how long the epoch in force may stay, at least 0. It returns false when age does not count. An
// epoch from the future was decided by a node with a wrong clock, or this clock is wrong: another one takes its place
// now, because its age is not known.
func untilAged(v state.View, interval time.Duration, now time.Time) (time.Duration, bool) {
	if v.Level() >= state.LevelSeeds && (interval <= 0 || interval > maxSeedAge) {
		interval = maxSeedAge
	}
	cur := v.Epochs().Current
	if interval <= 0 || cur.N == 0 {
		return 0, false
	}
	made := time.UnixMilli(cur.At)
	if made.Sub(now) > hlc.MaxAhead {
		return 0, true
	}
	return max(0, made.Add(interval).Sub(now)), true
}

// startAgeTimer returns a channel that receives when the epoch in force is too old, and a function that stops the
// timer. The channel is nil when age does not count.
func (s *Secrets) startAgeTimer() (<-chan time.Time, func()) {
	left, counts := untilAged(s.cfg.Log.View(), s.cfg.RotateInterval, s.cfg.Now())
	if !counts {
		return nil, func() {}
	}
	t := time.NewTimer(left)
	return t.C, func() { t.Stop() }
}
