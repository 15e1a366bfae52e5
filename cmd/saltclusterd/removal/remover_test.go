package removal

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

func quiet(string, string, ...int) {}

// fakeLog is the consensus log of m1.
type fakeLog struct {
	members  *state.State
	voters   []node.ID
	learners []node.ID
	leader   node.ID
	barrier  error
	detached bool
	propose  func(context.Context) ([]state.Result, error) // nil: the proposal is applied
}

func (l *fakeLog) View() state.View              { return l.members.View() }
func (l *fakeLog) Leader() node.ID               { return l.leader }
func (l *fakeLog) Detached() bool                { return l.detached }
func (l *fakeLog) Barrier(context.Context) error { return l.barrier }

func (l *fakeLog) Status() consensus.Status {
	return consensus.Status{Voters: l.voters, Learners: l.learners, Leader: l.leader, HasQuorum: l.leader != ""}
}

func (l *fakeLog) Propose(ctx context.Context, cmds ...state.Command) ([]state.Result, error) {
	if l.propose != nil {
		return l.propose(ctx)
	}
	for _, c := range cmds {
		id := c.(state.MemberRemove).ID
		l.voters = slices.DeleteFunc(slices.Clone(l.voters), func(v node.ID) bool { return v == id })
	}
	return l.members.ApplyCommands(cmds...), nil
}

// fakeDrains records what is asked of it.
type fakeDrains struct {
	aside, left int
	err         error
	emptied     []node.ID
}

func (d *fakeDrains) Empty(_ context.Context, id node.ID, _ admin.Progress) {
	d.emptied = append(d.emptied, id)
}
func (d *fakeDrains) CountAside(context.Context, node.ID) int { return d.aside }
func (d *fakeDrains) HandOverAside(context.Context, node.ID) (int, string, error) {
	return d.left, "its disk is full", d.err
}

// fixture is a Remover of m1, which leads m2, m3 and the witness w1.
type fixture struct {
	log     *fakeLog
	drains  *fakeDrains
	down    []node.ID
	left    atomic.Value  // string: why m1 is not a member any more
	endsAt  time.Duration // after the start, the membership of m1 is closed
	moves   []node.ID     // who leads after each transfer
	entered time.Time
	secret  bool // a node can join with the cluster secret
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	l := &fakeLog{members: state.New(), voters: []node.ID{"m1", "m2", "m3", "w1"}, leader: "m1"}
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
	return &fixture{log: l, drains: &fakeDrains{}, entered: time.Now()}
}

func (f *fixture) remover() *Remover {
	return New(Config{
		Self: "m1", ClusterID: "lab", UUID: "11111111-2222", Log: f.log,
		Alive: func(id node.ID) bool { return !slices.Contains(f.down, id) }, Drains: f.drains,
		Transfer: func(context.Context, node.ID) error {
			if len(f.moves) == 0 {
				return errors.New("no voter is fit")
			}
			f.log.leader, f.moves = f.moves[0], f.moves[1:]
			return nil
		},
		Audit:   func(cause string) state.Audit { return state.Audit{By: "m1", Cause: cause} },
		Left:    func() (string, bool) { reason, left := f.left.Load().(string); return reason, left },
		Running: func() bool { return time.Since(f.entered) < f.endsAt }, TakesSecret: func() bool { return f.secret },
		Logger: slog.New(slog.DiscardHandler),
	})
}

func (f *fixture) remove(t *testing.T, q adminapi.RemoveRequest) (adminapi.Outcome, error) {
	t.Helper()
	r := f.remover()
	return Verbs{Of: func() (*Remover, error) { return r, nil }}.Remove(t.Context(), q, quiet)
}

func TestVerbs_Remove(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*fixture)
		request adminapi.RemoveRequest
		code    adminapi.Code
		says    string // the error, or what is to be done next
		emptied bool
	}{
		"a living member": {
			request: adminapi.RemoveRequest{Node: "m2"}, says: "remove it from the load balancers", emptied: true,
		},
		"a witness": {request: adminapi.RemoveRequest{Node: "w1"}, says: "on w1: stop saltclusterd", emptied: true},
		"without waiting": {
			request: adminapi.RemoveRequest{Node: "m2", NoWait: true}, says: "the leader is still removing its vote", emptied: true,
		},
		"itself": {request: adminapi.RemoveRequest{Node: "m1"}, says: "on m1: stop saltclusterd", emptied: true},
		"a leader that finds no successor": {
			change:  func(f *fixture) { f.log.leader = "m2" },
			request: adminapi.RemoveRequest{Node: "m2"}, says: "on m2: stop saltclusterd", emptied: true,
		},
		"a bad name": {request: adminapi.RemoveRequest{Node: "M 2"}, code: adminapi.CodeInvalid},
		"a stranger": {request: adminapi.RemoveRequest{Node: "x"}, code: adminapi.CodeNotFound, says: "x is not a member"},
		"without a majority": {
			change:  func(f *fixture) { f.log.barrier, f.down = consensus.ErrNoLeader, []node.ID{"m2", "m3", "w1"} },
			request: adminapi.RemoveRequest{Node: "m2"}, code: adminapi.CodeNoQuorum, says: "m2, m3 and w1 are down",
		},
		"on a node that was removed": {
			change:  func(f *fixture) { f.log.barrier = consensus.ErrNoLeader; f.left.Store("m3 removed it") },
			request: adminapi.RemoveRequest{Node: "m2"}, code: adminapi.CodeNotMember, says: "m3 removed it",
		},
		"at the cost of the majority": {
			change:  func(f *fixture) { f.down = []node.ID{"m3", "w1"} },
			request: adminapi.RemoveRequest{Node: "m2"}, code: adminapi.CodeRefused, says: "m3 and w1 are down",
		},
		"at the cost of the majority by force": {
			change:  func(f *fixture) { f.down = []node.ID{"m3", "w1"} },
			request: adminapi.RemoveRequest{Node: "m2", Force: true}, says: "on m2: stop saltclusterd",
		},
		"with returns that were not handed over": {
			change:  func(f *fixture) { f.drains.aside, f.drains.left = 3, 2 },
			request: adminapi.RemoveRequest{Node: "m2"}, code: adminapi.CodeRefused, says: "not handed over: its disk is full",
		},
		"with returns of an earlier version": {
			change:  func(f *fixture) { f.drains.aside, f.drains.err = 3, errors.New("404") },
			request: adminapi.RemoveRequest{Node: "m2"}, code: adminapi.CodeRefused, says: "3 returns",
		},
		"with returns that were handed over": {
			change:  func(f *fixture) { f.drains.aside = 3 },
			request: adminapi.RemoveRequest{Node: "m2"}, says: "on m2: stop saltclusterd", emptied: true,
		},
		"with returns by force": {
			change:  func(f *fixture) { f.drains.aside, f.drains.left = 3, 3 },
			request: adminapi.RemoveRequest{Node: "m2", Force: true}, says: "3 returns that its salt-master does not answer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				if c.change != nil {
					c.change(f)
				}
				out, err := f.remove(t, c.request)
				text := strings.Join(out.Next, "\n")
				if err != nil {
					text = err.Error()
				}
				if adminapi.CodeOf(err) != c.code || !strings.Contains(text, c.says) {
					t.Errorf("%+v, %v", out, err)
				}
				if got := len(f.drains.emptied) > 0; got != c.emptied {
					t.Errorf("emptied: %v", f.drains.emptied)
				}
				if _, member := f.log.View().Member(node.ID(c.request.Node)); c.code == "" && member {
					t.Error("it is still a member")
				}
			})
		})
	}
	failed := errors.New("no member")
	v := Verbs{Of: func() (*Remover, error) { return nil, failed }}
	if _, err := v.Remove(t.Context(), adminapi.RemoveRequest{Node: "m2"}, quiet); !errors.Is(err, failed) {
		t.Error(err)
	}
}

// TestVerbs_RemoveNext: what is said next is about the node that was removed. One that was stolen has the cluster secret.
func TestVerbs_RemoveNext(t *testing.T) {
	for _, c := range []struct {
		node           string
		secret         bool
		balancer, join bool
	}{
		{node: "m2", balancer: true},
		{node: "m2", secret: true, balancer: true, join: true},
		{node: "w1", secret: true, join: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			f.secret = c.secret
			out, err := f.remove(t, adminapi.RemoveRequest{Node: c.node})
			text := strings.Join(out.Next, "\n")
			if err != nil || strings.Contains(text, "load balancers") != c.balancer ||
				strings.Contains(text, c.node+" can join again with the cluster secret") != c.join {
				t.Errorf("%s, secret %v: %v\n%s", c.node, c.secret, err, text)
			}
		})
	}
}

// TestVerbs_RemoveLeader transfers the leadership before the member is removed.
func TestVerbs_RemoveLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.moves = []node.ID{"m1", "m2"} // the first transfer does nothing
		if _, err := f.remove(t, adminapi.RemoveRequest{Node: "m1"}); err != nil || f.log.leader != "m2" {
			t.Errorf("%s leads, %v", f.log.leader, err)
		}
	})
}

// TestVerbs_RemoveWaitsForTurn retries while the member that was removed before still has a vote, and stops when this
// node is removed meanwhile.
func TestVerbs_RemoveWaitsForTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		tries := 0
		f.log.propose = func(context.Context) ([]state.Result, error) {
			if tries++; tries == 3 {
				f.log.propose = nil
				return f.log.Propose(t.Context(), state.MemberRemove{ID: "m2"})
			}
			return []state.Result{{Code: state.Conflict, Message: "m9 has a vote"}}, nil
		}
		if _, err := f.remove(t, adminapi.RemoveRequest{Node: "m2", NoWait: true}); err != nil || tries != 3 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
}

// TestVerbs_RemoveUnanswered has a proposal that is never answered, because this node was cut off.
func TestVerbs_RemoveUnanswered(t *testing.T) {
	for id, code := range map[string]adminapi.Code{"m1": "", "m2": adminapi.CodeNotMember} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			f.endsAt = time.Second
			f.log.propose = func(ctx context.Context) ([]state.Result, error) {
				f.left.Store("it was removed")
				<-ctx.Done()
				return nil, ctx.Err()
			}
			_, err := f.remove(t, adminapi.RemoveRequest{Node: id})
			if adminapi.CodeOf(err) != code || id == "m1" && time.Since(f.entered) < f.endsAt {
				t.Errorf("%s: %v after %s", id, err, time.Since(f.entered))
			}
		})
	}
}
