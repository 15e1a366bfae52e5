package identity

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/signin"
)

func TestDecideDuty(t *testing.T) {
	t.Parallel()
	staged := state.IdentityChange{Stage: state.IdentityStaged, FP: "new", Former: "old"}
	switched := state.IdentityChange{Stage: state.IdentitySwitched, FP: "new", Former: "old"}
	for _, c := range []struct {
		own, inForce string
		change       state.IdentityChange
		want         duty
	}{
		{"", "old", staged, dutyNone}, // the state is not known yet, or this node's key
		{"old", "", state.IdentityChange{}, dutyNone},
		{"old", "old", state.IdentityChange{}, dutyForget},
		{"old", "old", staged, dutyAnswer},
		{"old", "new", switched, dutyTake},
		{"new", "new", switched, dutyFollow},
		{"new", "new", state.IdentityChange{}, dutyForget},
		{"old", "new", state.IdentityChange{}, dutyMissed}, // finished without it
		{"older", "old", staged, dutyMissed},
		{"older", "new", switched, dutyMissed},
	} {
		if got := decideDuty(c.own, c.inForce, c.change); got != c.want {
			t.Errorf("%s, %s in force, %s: %d, want %d", c.own, c.inForce, c.change.Stage, got, c.want)
		}
	}
}

// fakeLog is a log that is always caught up.
type fakeLog struct{ *state.State }

func (fakeLog) CaughtUp() bool                { return true }
func (fakeLog) Barrier(context.Context) error { return nil }

// fakeMaster records the second identities that sign-ins are answered under.
type fakeMaster struct {
	options *localmaster.Config
	answers []*signin.Another
}

func (m *fakeMaster) functions() Master {
	return Master{
		Options:   func() *localmaster.Config { return m.options },
		Answer:    func(another *signin.Another) { m.answers = append(m.answers, another) },
		PubSigner: func(*localmaster.Config, string) (signin.PubSigner, error) { return nil, nil },
	}
}

func TestAnswerBoth(t *testing.T) {
	t.Parallel()
	newKey := func() *saltcrypt.MasterKey {
		t.Helper()
		key, err := saltcrypt.GenerateMasterKey(2048)
		require.NoError(t, err)
		return key
	}
	seal := func(to, key *saltcrypt.MasterKey) []byte {
		t.Helper()
		sealed, err := saltcrypt.SealFor(to.Public(), sealLabel, key.PEM())
		require.NoError(t, err)
		return sealed
	}
	former, next, other := newKey(), newKey(), newKey()
	fp, nextFP := saltcrypt.Fingerprint(former.PublicText()), saltcrypt.Fingerprint(next.PublicText())
	epoch, err := saltcrypt.NewKey()
	require.NoError(t, err)
	stage := func(sealed *saltcrypt.MasterKey) *state.State {
		t.Helper()
		st := state.New()
		for _, cmd := range []state.Command{
			state.Init{
				Identity: state.Identity{ClusterID: "c", UUID: "u", IdentityFP: fp}, EpochKey: state.SecretText(epoch.Text()),
				Founder:     state.Member{ID: "m1", Addr: "192.0.2.1:4520", Fingerprint: strings.Repeat("ab", 32), Weight: 100},
				SessionSeed: state.NewSecret(make([]byte, 32)), GossipKey: state.NewSecret(make([]byte, 32)),
				Audit: state.Audit{By: "m1", At: 1},
			},
			state.IdentityStage{
				Expect: fp, FP: nextFP, Public: next.PublicText(), Sealed: seal(former, sealed), Former: seal(next, former),
				Audit: state.Audit{By: "m1", At: 2},
			},
		} {
			require.NoError(t, st.ApplyCommands(cmd)[0].Err())
		}
		return st
	}
	newChange := func(st *state.State, master *fakeMaster) *Change {
		c := New(Config{
			Self: "m1", Log: fakeLog{st}, Key: former, Fingerprint: fp, Logger: slog.New(slog.DiscardHandler),
			PinsFile: filepath.Join(t.TempDir(), "pins.json"),
		})
		if master != nil {
			c.SetMaster(master.functions())
		}
		return c
	}

	master := &fakeMaster{options: &localmaster.Config{}}
	st := stage(next)
	c := newChange(st, master)
	answer := func(want int) {
		t.Helper()
		if err := c.AnswerBoth(st.View()); err != nil || len(master.answers) != want {
			t.Fatalf("%v, answered %d times, want %d", err, len(master.answers), want)
		}
	}
	answer(1)
	answer(1) // nothing has changed
	if got := master.answers[0]; got == nil || got.Identity.PublicText() != next.PublicText() {
		t.Errorf("answered under %+v", got)
	}
	master.options = &localmaster.Config{}
	answer(2)
	if _, options := c.Second(); options != master.options {
		t.Error("the second identity does not follow the options")
	}
	drop := state.IdentityDrop{FP: nextFP, Stage: state.IdentityStaged, Audit: state.Audit{By: "m1", At: 3}}
	require.NoError(t, st.ApplyCommands(drop)[0].Err())
	answer(3)
	if second, _ := c.Second(); second != nil || master.answers[2] != nil {
		t.Error("a second identity after the end of the change")
	}

	master = &fakeMaster{options: &localmaster.Config{}}
	if err := newChange(stage(other), master).AnswerBoth(stage(other).View()); err == nil || len(master.answers) != 0 {
		t.Errorf("a key that was not agreed on: %v, %d answers", err, len(master.answers))
	}
	check.NoError(t, newChange(stage(next), nil).AnswerBoth(stage(next).View()), "a witness")
}
