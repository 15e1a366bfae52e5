package leadership

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/router"
)

// fakeLog is the consensus log of m1, whose attempts to transfer the leadership it records.
type fakeLog struct {
	members *state.State
	leader  node.ID
	refuses []node.ID // do not take over
	tried   []node.ID
}

func (l *fakeLog) View() state.View { return l.members.View() }
func (l *fakeLog) Leader() node.ID  { return l.leader }

func (l *fakeLog) TransferLeadership(_ context.Context, to node.ID) error {
	l.tried = append(l.tried, to)
	if slices.Contains(l.refuses, to) {
		return errors.New("it does not take over")
	}
	l.leader = to
	return nil
}

// newControl returns the Control of m1, which leads the voters m1, m2, m3 and the witness w1, and its log.
func newControl(t *testing.T, change ...func(*Config)) (*Control, *fakeLog) {
	t.Helper()
	l := &fakeLog{members: state.New(), leader: "m1"}
	cmds := []state.Command{state.Init{
		Identity:    state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
		Founder:     state.Member{ID: "m1", Addr: "10.0.0.1:4520", Fingerprint: strings.Repeat("a", 64), Weight: 100},
		EpochKey:    state.SecretText(strings.Repeat("QUFB", 18) + "QUE="),
		SessionSeed: state.SecretText(strings.Repeat("s", 32)),
		GossipKey:   state.SecretText(strings.Repeat("g", 32)),
	}}
	for i, id := range []node.ID{"m2", "m3", "w1"} {
		digit := string('2' + rune(i))
		cmds = append(cmds, state.MemberAdd{
			ID: id, Addr: "10.0.0." + digit + ":4520", Fingerprint: strings.Repeat(digit, 64), Weight: 100, Witness: id == "w1",
		})
	}
	for _, r := range l.members.ApplyCommands(cmds...) {
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
	}
	cfg := Config{
		Self: "m1", ClusterID: "lab", UUID: "11111111-2222", Log: l,
		Voters:  func() []node.ID { return []node.ID{"m1", "m2", "m3", "w1"} },
		Alive:   func(node.ID) bool { return true },
		Leaving: func(node.ID) bool { return false },
		Routes: func() router.View {
			return router.View{Nodes: []router.Node{
				{ID: "m1", Alive: true}, {ID: "m2", Alive: true, MasterUp: true}, {ID: "m3", Alive: true, MasterUp: true},
			}}
		},
		NoQuorum: func(err error) error { return adminapi.Errorf(adminapi.CodeNoQuorum, "", "no quorum: %v", err) },
		Logger:   slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&cfg)
	}
	return New(cfg), l
}

func only(ids ...node.ID) func(node.ID) bool {
	return func(id node.ID) bool { return slices.Contains(ids, id) }
}

func alone(c *Config) { c.Alive = only("m1") }

func withoutVote(id node.ID) func(*Config) {
	return func(c *Config) {
		voters := slices.DeleteFunc(c.Voters(), only(id))
		c.Voters = func() []node.ID { return voters }
	}
}

func withoutLeader(c *Config) { c.Log.(*fakeLog).leader = "" }

func TestSuccessor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   node.ID
	}{
		"first with a salt-master": {func(*Config) {}, "m2"},
		"not dead":                 {func(c *Config) { c.Alive = only("m1", "m3", "w1") }, "m3"},
		"not leaving":              {func(c *Config) { c.Leaving = only("m2") }, "m3"},
		"not a learner":            {withoutVote("m2"), "m3"},
		"witness as the last":      {func(c *Config) { c.Alive = only("m1", "w1") }, "w1"},
		"none":                     {alone, ""},
	} {
		control, _ := newControl(t, c.change)
		check.Equal(t, control.successor("m1"), c.want, name)
	}
	control, l := newControl(t)
	draining := true
	l.members.ApplyCommands(state.MemberSet{ID: "m2", Draining: &draining})
	check.Equal(t, control.successor("m1"), "m3", "m2 drains")
}

func TestResign(t *testing.T) {
	control, l := newControl(t)
	control.Resign(t.Context())
	if l.leader != "m2" {
		t.Errorf("%s leads", l.leader)
	}
	control.Resign(t.Context()) // does not lead any more
	if len(l.tried) != 1 {
		t.Errorf("transfers to %v", l.tried)
	}
	control, l = newControl(t, alone)
	if control.Resign(t.Context()); l.leader != "m1" || len(l.tried) > 0 {
		t.Errorf("transfers to %v without a successor", l.tried)
	}
}

func TestVerbs_Transfer(t *testing.T) {
	quiet := func(string, string, ...int) {}
	for name, c := range map[string]struct {
		change  func(*Config)
		to      string
		noWait  bool
		want    string
		code    adminapi.Code
		message string
	}{
		"to any":          {to: "", want: "m2", message: "m2 leads the cluster lab now"},
		"to a witness":    {to: "w1", want: "w1", message: "w1 leads the cluster lab now"},
		"to the leader":   {to: "m1", want: "m1", message: "m1 leads the cluster lab already"},
		"without waiting": {to: "m3", noWait: true, want: "m3", message: "the leadership was handed over"},
		"to a stranger":   {to: "x", code: adminapi.CodeRefused, message: "x is not a voter"},
		"to a dead node":  {change: alone, to: "m2", code: adminapi.CodeRefused, message: "m2 does not answer"},
		"to none":         {change: alone, code: adminapi.CodeRefused, message: "no other voter"},
		"without leader":  {change: withoutLeader, to: "m2", code: adminapi.CodeNoQuorum, message: "no leader"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var change []func(*Config)
				if c.change != nil {
					change = append(change, c.change)
				}
				control, _ := newControl(t, change...)
				v := Verbs{Of: func() (*Control, error) { return control, nil }}
				out, err := v.Transfer(t.Context(), adminapi.TransferRequest{To: c.to, NoWait: c.noWait}, quiet)
				text := out.Message
				if err != nil {
					text = err.Error()
				}
				if (err != nil) != (c.code != "") || err != nil && adminapi.CodeOf(err) != c.code ||
					out.Node != c.want || !strings.Contains(text, c.message) {
					t.Errorf("%+v, %v", out, err)
				}
			})
		})
	}
	failed := errors.New("no member")
	v := Verbs{Of: func() (*Control, error) { return nil, failed }}
	if _, err := v.Transfer(t.Context(), adminapi.TransferRequest{}, quiet); !errors.Is(err, failed) {
		t.Error(err)
	}
}

// TestResignWhenShareHangs tries the next node when the first one does not take over.
func TestResignWhenShareHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control, l := newControl(t)
		l.refuses = []node.ID{"m2"}
		since := time.Now()
		watch := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			control.ResignWhenShareHangs(ctx, func() (string, time.Time) { return "it does not answer", since })
		}
		watch(shareHungFor - shareEvery)
		if len(l.tried) > 0 {
			t.Errorf("transfers to %v at once", l.tried)
		}
		watch(successorRetry + 4*shareEvery)
		if len(l.tried) < 2 || !slices.Equal(l.tried[:2], []node.ID{"m2", "m3"}) {
			t.Errorf("transfers to %v", l.tried)
		}
	})
}
