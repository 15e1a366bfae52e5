package daemon

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// Reasons of an epoch that nobody is in a hurry for, beside state.ReasonRevoked.
const (
	reasonAge      = "age"
	reasonOperator = "operator"
	reasonRemoved  = "member removed"
)

// Rotate implements admin.Governor.
func (d *Daemon) Rotate(ctx context.Context, r adminapi.RotateRequest, p admin.Progress) (adminapi.Outcome, error) {
	m := d.current()
	if m == nil {
		return adminapi.Outcome{}, d.errNoMember()
	}
	rotate := map[string]func(context.Context, adminapi.RotateRequest, admin.Progress) (adminapi.Outcome, error){
		"": m.rotateAES, adminapi.RotateAES: m.rotateAES, adminapi.RotateGossipKey: m.rotateGossipKey,
		adminapi.RotateSecret: m.admission.RotateSecret, adminapi.RotateCertificates: m.rotateCertificates,
		adminapi.RotateIdentity: m.rotateIdentity,
	}[r.What]
	if rotate == nil {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeInvalid, "saltclusterctl rotate --help", "there is no %.40q to rotate", r.What)
	}
	out, err := rotate(ctx, r, p)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	out.Node, out.ClusterID, out.UUID, out.Role = string(d.id), m.seed.ClusterID, m.seed.UUID, adminapi.RoleVoter
	if r.DryRun {
		out.Message = "nothing was changed; " + out.Message
	}
	return out, nil
}

// rotateAES asks for a new AES key, decided by the cluster, to which each node moves its minions over rotate_window.
func (m *member) rotateAES(ctx context.Context, r adminapi.RotateRequest, p admin.Progress) (adminapi.Outcome, error) {
	n, window := m.cons.View().Epochs().Current.N, m.d.cfg.Edge.RotateWindow
	if r.DryRun {
		return adminapi.Outcome{
			Message: fmt.Sprintf("AES key number %d would be in force, and minions moved to it within %s", n+1, window), Next: m.downLines(laterByLog),
		}, nil
	}
	p("rotate", "asking the cluster for a new AES key")
	deciding, cancel := context.WithTimeout(ctx, decidedWithin)
	defer cancel()
	epoch, err := m.cons.RotateEpoch(deciding, n, reasonOperator, newEpochKey)
	if undecided(ctx, err) {
		return adminapi.Outcome{}, m.noQuorum(err)
	}
	if err != nil {
		return adminapi.Outcome{}, err
	}
	return adminapi.Outcome{
		Message: fmt.Sprintf("AES key number %d is in force; minions are moved to it within %s", epoch.N, window), Next: m.downLines(laterByLog),
	}, nil
}

// rotateGossipKey gives the members another key for gossip. The leader takes the old one back when the others have the new one.
func (m *member) rotateGossipKey(ctx context.Context, r adminapi.RotateRequest, p admin.Progress) (adminapi.Outcome, error) {
	now := m.cons.View().GossipKeys()[0].N
	if r.DryRun {
		return adminapi.Outcome{
			Message: fmt.Sprintf("gossip key number %d would take the place of number %d", now+1, now), Next: m.downLines(laterByLog),
		}, nil
	}
	p("rotate", "asking the cluster for a new gossip key")
	add := state.GossipKeyAdd{Expect: now, Key: state.NewSecret(randomBytes(membership.GossipKeySize)), Audit: m.audit("rotate")}
	if _, err := m.decide(ctx, add); err != nil {
		return adminapi.Outcome{}, err
	}
	p("rotate", "the others get it; then the old one is not heard any more")
	waiting, cancel := context.WithTimeout(ctx, removedWithin)
	defer cancel()
	for len(m.cons.View().GossipKeys()) > 1 || m.cons.View().GossipKeys()[0].N <= now {
		if !backoff.Sleep(waiting, removedPoll) {
			return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeTimeout, "the leader goes on by itself",
				"gossip key number %d is in force, but the former one is still heard, too", now+1)
		}
	}
	return adminapi.Outcome{Message: fmt.Sprintf("gossip key number %d is in force, and no other", now+1), Next: m.downLines(laterByLog)}, nil
}

// laterByLog is what becomes of a node that is down while a secret in consensus changes.
const laterByLog = "%s is down: it gets the new one from the log when it comes back"

// downLines says it of each member that is not there.
func (m *member) downLines(format string) []string {
	var out []string
	for _, mem := range m.cons.View().Members() {
		if !m.alive(mem.ID) {
			out = append(out, fmt.Sprintf(format, mem.ID))
		}
	}
	return out
}

// untilAged is how long the epoch in force may stay, not less than 0; false when age does not count.
func untilAged(e state.Epoch, interval time.Duration, now time.Time) (time.Duration, bool) {
	if interval <= 0 || e.N == 0 {
		return 0, false
	}
	return max(0, time.UnixMilli(e.At).Add(interval).Sub(now)), true
}

// aged returns a channel that fires when the epoch in force is too old; nil never does.
func (m *member) aged() (<-chan time.Time, func()) {
	left, counts := untilAged(m.cons.View().Epochs().Current, m.d.cfg.Edge.RotateInterval, time.Now())
	if !counts {
		return nil, func() {}
	}
	t := time.NewTimer(left)
	return t.C, func() { t.Stop() }
}
