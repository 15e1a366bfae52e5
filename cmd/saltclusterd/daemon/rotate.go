package daemon

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// Reasons of an epoch that nobody is in a hurry for, beside reasonRevoked.
const (
	reasonAge      = "age"
	reasonOperator = "operator"
)

// Rotate implements admin.Backend: a new AES key, decided by the cluster, to which each node moves its minions over rotate_window.
func (d *Daemon) Rotate(ctx context.Context, _ adminapi.RotateRequest, p admin.Progress) (adminapi.Outcome, error) {
	m := d.current()
	if m == nil {
		return adminapi.Outcome{}, errNoMember()
	}
	p("rotate", "asking the cluster for a new AES key")
	deciding, cancel := context.WithTimeout(ctx, decidedWithin)
	defer cancel()
	epoch, err := m.cons.RotateEpoch(deciding, m.cons.View().Epochs().Current.N, reasonOperator, newEpochKey)
	if undecided(ctx, err) {
		return adminapi.Outcome{}, m.noQuorum(err)
	}
	if err != nil {
		return adminapi.Outcome{}, err
	}
	return adminapi.Outcome{
		Node: string(d.id), ClusterID: m.seed.ClusterID, UUID: m.seed.UUID, Role: adminapi.RoleVoter,
		Message: fmt.Sprintf("AES key number %d is in force; minions are moved to it within %s", epoch.N, d.cfg.Edge.RotateWindow),
	}, nil
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
