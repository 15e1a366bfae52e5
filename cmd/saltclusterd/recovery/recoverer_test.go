package recovery

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

func quiet(string, string, ...int) {}

// fakeOperations admits an operation unless busy.
type fakeOperations struct{ busy, ended bool }

func (o *fakeOperations) TryBegin() bool { return !o.busy }
func (o *fakeOperations) End()           { o.ended = true }

// newRecoverer returns a Recoverer of m1, which has lost m2 and m3, and its membership.
func newRecoverer(t *testing.T) (*Recoverer, *Membership) {
	t.Helper()
	contact := newContact(t)
	contact.note(t, time.Now().Add(-time.Minute))
	m := &Membership{
		Record: &membership.Record{ClusterID: "lab", UUID: "11111111-2222", Node: "m1"},
		Log:    newLog(t), Address: "10.0.0.1:4520",
		Alive: func(id node.ID) bool { return id == "m1" },
		Describe: func(mem state.Member, _ consensus.Status) adminapi.Member {
			return adminapi.Member{ID: string(mem.ID), Address: mem.Addr, Role: adminapi.RoleVoter, State: adminapi.StateFailed}
		},
	}
	options := &config.Config{}
	options.Paths.StateDir = contact.StateDir
	return New(Config{
		Self: "m1", Options: options, Running: func() (Membership, error) { return *m, nil },
		Operations: &fakeOperations{}, Contact: contact, Logger: slog.New(slog.DiscardHandler),
	}), m
}

func TestRecoverer_RecoverPlan(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Recoverer, *Membership)
		says   string // the refusal; empty: there is a plan
	}{
		"majority lost": {change: func(*Recoverer, *Membership) {}},
		"a witness":     {func(r *Recoverer, _ *Membership) { r.cfg.Options.Cluster.Witness = true }, "witness"},
		"not on the roster": {
			func(r *Recoverer, _ *Membership) { r.cfg.Self = "m9" }, "not in the member list",
		},
		"with a leader": {
			func(_ *Recoverer, m *Membership) {
				l := m.Log.(*fakeLog)
				l.status.HasQuorum, l.status.Leader = true, "m2"
			}, "m2 leads",
		},
		"during an election": {
			func(_ *Recoverer, m *Membership) { m.Alive = func(id node.ID) bool { return id != "m3" } },
			"2 of 3 voters answer",
		},
	} {
		r, m := newRecoverer(t)
		c.change(r, m)
		plan, err := r.RecoverPlan(t.Context())
		if c.says != "" {
			if adminapi.CodeOf(err) != adminapi.CodeRefused || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || plan.ClusterID != "lab" || plan.Index != 7 || plan.Address != "10.0.0.1:4520" ||
			len(plan.Drop) != 2 || plan.Drop[0].ID != "m2" || time.Since(plan.LastContact) < time.Minute {
			t.Errorf("%s: %+v, %v", name, plan, err)
		}
	}
}

func TestRecoverer_Recover_Refused(t *testing.T) {
	r, m := newRecoverer(t)
	m.Restart = func(func()) { t.Error("the membership is restarted") }
	ops := r.cfg.Operations.(*fakeOperations)
	plan, err := r.RecoverPlan(t.Context())
	require.NoError(t, err)
	_, err = r.Recover(t.Context(), adminapi.RecoverRequest{Rev: plan.Rev + 1}, quiet)
	if adminapi.CodeOf(err) != adminapi.CodeRefused || !ops.ended {
		t.Errorf("another plan: %v", err)
	}
	ops.busy = true
	_, err = r.Recover(t.Context(), adminapi.RecoverRequest{Rev: plan.Rev}, quiet)
	if adminapi.CodeOf(err) != adminapi.CodeBusy {
		t.Errorf("during another operation: %v", err)
	}
}

// TestRecoverer_Recover_Fails has a membership without a saved roster, which is not rewritten.
func TestRecoverer_Recover_Fails(t *testing.T) {
	r, m := newRecoverer(t)
	m.Restart = func(offline func()) { go offline() }
	plan, err := r.RecoverPlan(t.Context())
	require.NoError(t, err)
	_, err = r.Recover(t.Context(), adminapi.RecoverRequest{Rev: plan.Rev}, quiet)
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Error(err)
	}
	m.Restart = func(func()) {} // the membership never ends
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the operator has gone")
	cancel(gone)
	if _, err = r.Recover(ctx, adminapi.RecoverRequest{Rev: plan.Rev}, quiet); !errors.Is(err, gone) {
		t.Error(err)
	}
}

func TestDescribeUndone(t *testing.T) {
	made := time.Date(2026, 11, 21, 4, 5, 6, 0, time.UTC)
	for want, now := range map[string]time.Time{
		"the snapshot is 1h0m0s old (2026-11-21T04:05:06Z)": made.Add(time.Hour),
		"made at an unknown time":                           made.Add(-time.Hour),
	} {
		got := describeUndone(made, now)
		for _, say := range []string{want, "keys delete ID", "rotate secret", "join tokens"} {
			if !strings.Contains(got, say) {
				t.Errorf("%q lacks %q", got, say)
			}
		}
	}
}

func TestNewGossipKey(t *testing.T) {
	if a, b := newGossipKey(), newGossipKey(); len(a) != membership.GossipKeySize || slices.Equal(a, b) {
		t.Errorf("%d bytes", len(a))
	}
}
