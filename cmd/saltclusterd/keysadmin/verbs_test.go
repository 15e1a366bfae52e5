package keysadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

var errNoMajority = errors.New("no majority")

// fakeLog decides at once, unless it lacks a majority.
type fakeLog struct {
	*state.State
	lost bool
}

func (l *fakeLog) Barrier(context.Context) error {
	if l.lost {
		return errNoMajority
	}
	return nil
}

func (l *fakeLog) Propose(_ context.Context, cmds ...state.Command) ([]state.Result, error) {
	if l.lost {
		return nil, errNoMajority
	}
	return l.ApplyCommands(cmds...), nil
}

type fakeHeld struct{ ids []string }

func (h *fakeHeld) Held() []string { return h.ids }
func (h *fakeHeld) Forget(context.Context) ([]string, error) {
	ids := h.ids
	h.ids = nil
	return ids, nil
}

func newTestVerbs(t *testing.T, held HeldKeys) (v Verbs, log *fakeLog, changed *int) {
	t.Helper()
	log, changed = &fakeLog{State: state.New()}, new(int)
	for _, r := range log.ApplyCommands(
		state.Init{
			Identity:    state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
			Founder:     state.Member{ID: "m1", Addr: "10.0.0.1:4520", Fingerprint: strings.Repeat("a", 64), Weight: 100},
			EpochKey:    state.SecretText(strings.Repeat("QUFB", 18) + "QUE="),
			SessionSeed: state.SecretText(strings.Repeat("s", 32)), GossipKey: state.SecretText(strings.Repeat("g", 32)),
		},
		state.KeySet{ID: "web1", State: state.KeyPending, Pub: "PEM"},
	) {
		require.NoError(t, r.Err())
	}
	keys := New(Config{
		Self: "m1", Log: log, Held: held, HeldChanged: func() { *changed++ },
		AwaitRev:    func(context.Context, uint64) error { return nil },
		Audit:       func(cause string) state.Audit { return state.Audit{By: "m1", Cause: cause} },
		LacksQuorum: func(err error) bool { return errors.Is(err, errNoMajority) },
		NoQuorum:    func(err error) error { return adminapi.Errorf(adminapi.CodeNoQuorum, "", "%v", err) },
	})
	return Verbs{Of: func() (*Keys, error) { return keys, nil }}, log, changed
}

func TestVerbs_HeldKeys(t *testing.T) {
	v, _, changed := newTestVerbs(t, &fakeHeld{ids: []string{"web1", "web2"}})
	for i, want := range [][]string{{"web1", "web2"}, {}} {
		got, err := v.ForgetHeldKeys(t.Context())
		if err != nil || got.Node != "m1" || !slices.Equal(got.IDs, want) || *changed != i+1 {
			t.Errorf("forgotten are %+v, want %v; %v", got, want, err)
		}
	}
	witness, _, changed := newTestVerbs(t, nil)
	got, err := witness.ForgetHeldKeys(t.Context())
	if err != nil || got.IDs == nil || len(got.IDs) != 0 || *changed != 0 {
		t.Errorf("on a witness: %+v, %v", got, err)
	}
}

func TestVerbs_DecideKeys(t *testing.T) {
	v, log, _ := newTestVerbs(t, nil)
	r := adminapi.DecideKeysRequest{IDs: []string{"none", "web1"}, State: adminapi.KeyAccepted}
	got, err := v.DecideKeys(t.Context(), r)
	if err != nil || len(got.Keys) != 2 || got.Keys[0].Error != "there is no such key" || got.Keys[1].Error != "" {
		t.Errorf("decided are %+v, %v", got, err)
	}
	if k, _ := log.View().Key("web1"); k.State != state.KeyAccepted || k.Audit.Cause != "saltclusterctl" {
		t.Errorf("the key is %+v", k)
	}
	log.lost = true
	if _, err := v.DecideKeys(t.Context(), r); adminapi.CodeOf(err) != adminapi.CodeNoQuorum {
		t.Errorf("without a majority: %v", err)
	}
	of := adminapi.KeysOfRequest{IDs: []string{"web1"}}
	if _, err := v.KeysOf(t.Context(), of); adminapi.CodeOf(err) != adminapi.CodeNoQuorum {
		t.Errorf("keys without a majority: %v", err)
	}
}

func TestVerbs_WithoutMembership(t *testing.T) {
	none := errors.New("no member")
	v := Verbs{Of: func() (*Keys, error) { return nil, none }}
	ctx := t.Context()
	for name, ask := range map[string]func() error{
		"keys":   func() error { _, err := v.Keys(ctx, adminapi.KeyQuery{}); return err },
		"decide": func() error { _, err := v.DecideKeys(ctx, adminapi.DecideKeysRequest{}); return err },
		"held":   func() error { _, err := v.HeldKeys(ctx); return err },
		"forget": func() error { _, err := v.ForgetHeldKeys(ctx); return err },
		"of":     func() error { _, err := v.KeysOf(ctx, adminapi.KeysOfRequest{}); return err },
		"put":    func() error { _, err := v.PutKeys(ctx, adminapi.PutKeysRequest{}); return err },
	} {
		if err := ask(); !errors.Is(err, none) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckHeld(t *testing.T) {
	if r := CheckHeld("m1", nil); r.Level != health.OK {
		t.Errorf("nothing held: %+v", r)
	}
	var ids []string
	for i := range maxNamedKeys + 1 {
		ids = append(ids, fmt.Sprint("web", i))
	}
	r := CheckHeld("m1", ids)
	if r.Level != health.Warn || !strings.Contains(r.Reason, "web4 …") || strings.Contains(r.Reason, "web5") ||
		!strings.Contains(r.Hint, "on m1:") {
		t.Errorf("many held: %+v", r)
	}
}
