package drain

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/jobs"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/router"
	"saltclusterd/signal"
)

// fakeLog is the consensus log of m1 and m2.
type fakeLog struct {
	*state.State
	mu       sync.Mutex
	watchers map[chan struct{}]bool
	err      error // of proposals
}

func newFakeLog(t *testing.T) *fakeLog {
	t.Helper()
	l := &fakeLog{State: state.New(), watchers: map[chan struct{}]bool{}}
	for _, r := range l.ApplyCommands(
		state.Init{
			Identity:    state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
			Founder:     state.Member{ID: "m1", Addr: "10.0.0.1:4520", Fingerprint: strings.Repeat("a", 64), Weight: 100},
			EpochKey:    state.SecretText(strings.Repeat("QUFB", 18) + "QUE="),
			SessionSeed: state.SecretText(strings.Repeat("s", 32)),
			GossipKey:   state.SecretText(strings.Repeat("g", 32)),
		},
		state.MemberAdd{ID: "m2", Addr: "10.0.0.2:4520", Fingerprint: strings.Repeat("b", 64), Weight: 100},
	) {
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
	}
	return l
}

func (l *fakeLog) Leader() node.ID { return "m2" }

func (l *fakeLog) Propose(_ context.Context, cmds ...state.Command) ([]state.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	results := l.ApplyCommands(cmds...)
	for w := range l.watchers {
		signal.Send(w)
	}
	return results, nil
}

func (l *fakeLog) Watch(ctx context.Context) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := make(chan struct{}, 1)
	l.watchers[w] = true
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watchers, w)
		close(w)
	})
	return w
}

// fakePort is a port with connections that a drain closes at its end.
type fakePort struct {
	mu    sync.Mutex
	conns int
	late  time.Duration   // how much longer than wanted a drain takes
	over  []time.Duration // of the drains that began
}

func (p *fakePort) Drain(ctx context.Context, over time.Duration) {
	p.mu.Lock()
	p.over = append(p.over, over)
	p.mu.Unlock()
	if backoff.Sleep(ctx, over+p.late) {
		p.set(0)
	}
}

func (p *fakePort) set(conns int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = conns
}

func (p *fakePort) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns
}

func (p *fakePort) drains() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.over)
}

type fakePublishPort struct{ fakePort }

func (p *fakePublishPort) Stats() edge.PubStats {
	return edge.PubStats{Conns: p.count(), Subscribers: p.count()}
}

type fakeRequestPort struct{ fakePort }

func (p *fakeRequestPort) Stats() edge.ReqStats { return edge.ReqStats{Conns: p.count()} }

type fakeReturns struct{ kept, deferred, unstored, aside uint64 }

func (f fakeReturns) Kept() uint64                        { return f.kept }
func (f fakeReturns) Deferred() uint64                    { return f.deferred }
func (f fakeReturns) Unstored() uint64                    { return f.unstored }
func (f fakeReturns) Aside() int                          { return int(f.aside) }
func (fakeReturns) HandOver(context.Context) (int, error) { return 4, errors.New("full") }

type fakeCache struct{ waiting int }

func (f fakeCache) Status() jobs.Status {
	return jobs.Status{Peers: []jobs.PeerStatus{{ID: "m2", Waiting: f.waiting}}}
}

const (
	announceTime = 10 * time.Second
	drainTime    = time.Minute
)

// testNode is m1 with a subscriber and a request connection.
type testNode struct {
	*Runner
	log      *fakeLog
	pub      *fakePublishPort
	req      *fakeRequestPort
	jobsLeft bool
	others   bool // serve minions

	mu        sync.Mutex
	announced []bool
	resigned  int
	reopened  int
}

func newTestNode(t *testing.T) *testNode {
	t.Helper()
	n := &testNode{log: newFakeLog(t), pub: &fakePublishPort{}, req: &fakeRequestPort{}, others: true}
	n.pub.set(1)
	n.req.set(1)
	count := func(what *int) { n.mu.Lock(); defer n.mu.Unlock(); *what++ }
	n.Runner = New(Config{
		Self: "m1", Log: n.log, Publish: n.pub, Requests: n.req, Returns: fakeReturns{1, 2, 3, 4}, Cache: fakeCache{5},
		Routes: n.routes,
		Jobs: NewRunningJobs(time.Hour, func(string) (int, int) {
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.jobsLeft {
				return 0, 1
			}
			return 1, 1
		}),
		Announce: func(draining bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.announced = append(n.announced, draining)
		},
		Resign: func(context.Context) { count(&n.resigned) },
		Reopen: func(context.Context) error { count(&n.reopened); return nil },
		Fail:   func(err error) { t.Error(err) }, AnnounceTime: announceTime, DrainTime: drainTime,
		Logger: slog.New(slog.DiscardHandler),
	})
	return n
}

func (n *testNode) routes() router.View {
	return router.View{Nodes: []router.Node{{ID: "m1", Alive: true}, {ID: "m2", Alive: n.others}}}
}

// follow has the Runner follow the log until the test ends.
func (n *testNode) follow(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Follow(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func (n *testNode) decide(t *testing.T, draining bool) {
	t.Helper()
	results, err := n.log.Propose(t.Context(), state.MemberSet{ID: "m1", Draining: &draining})
	if err != nil || results[0].Err() != nil {
		t.Fatal(err, results)
	}
	synctest.Wait()
}

func (n *testNode) wantPhase(t *testing.T, want Phase) {
	t.Helper()
	synctest.Wait()
	if got := n.Report().Phase; got != want {
		t.Fatalf("phase %q, want %q", got, want)
	}
}

func TestFollow_DrainAndUndrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t)
		n.follow(t)
		n.wantPhase(t, Serving)
		n.decide(t, true)
		n.wantPhase(t, Announced)
		if !n.Draining() || !n.InProgress() || !n.Wanted() || len(n.pub.drains()) > 0 {
			t.Error("a drain that was announced")
		}
		time.Sleep(announceTime)
		n.wantPhase(t, HandingOver)
		check.EqualSlices(t, n.pub.drains(), []time.Duration{drainTime}, "drained over")
		time.Sleep(drainTime)
		n.wantPhase(t, Drained)
		if !n.Draining() || n.InProgress() {
			t.Error("a drain that has ended")
		}
		want := Report{Phase: Drained, Kept: 1, Deferred: 2, Unstored: 8, Aside: 4}
		check.Equal(t, n.Report(), want, "report")
		n.decide(t, false)
		n.wantPhase(t, Serving)
		n.mu.Lock()
		defer n.mu.Unlock()
		if !slices.Equal(n.announced, []bool{true, false}) || n.reopened != 1 {
			t.Errorf("announced %v, reopened %d times", n.announced, n.reopened)
		}
		if n.resigned < 2 {
			t.Errorf("resigned %d times in a minute", n.resigned)
		}
	})
}

func TestFollow_TakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t)
		n.follow(t)
		n.decide(t, true)
		time.Sleep(announceTime + drainTime/2)
		n.wantPhase(t, HandingOver)
		n.decide(t, false)
		n.wantPhase(t, Serving)
		time.Sleep(drainTime)
		check.Equal(t, n.pub.count(), 1, "the drain that was taken back has disconnected a subscriber")
	})
}

// TestFollow_NewOptions gives a drain in progress another time; options without a time do not disturb it.
func TestFollow_NewOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t)
		n.follow(t)
		n.setOptions(Options{Over: time.Hour})
		n.decide(t, true)
		time.Sleep(announceTime)
		n.wantPhase(t, HandingOver)
		n.setOptions(Options{})
		synctest.Wait()
		n.setOptions(Options{Over: time.Second})
		n.wantPhase(t, HandingOver)
		time.Sleep(time.Second)
		n.wantPhase(t, Drained)
		check.EqualSlices(t, n.pub.drains(), []time.Duration{time.Hour, time.Second}, "drained over")
	})
}

func TestFollow_WaitsForJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t)
		n.jobsLeft = true
		n.cfg.Jobs.Inherit([]string{"20261122101500000000"})
		n.follow(t)
		n.setOptions(Options{WaitJobs: true})
		n.decide(t, true)
		time.Sleep(announceTime + drainTime)
		n.wantPhase(t, WaitingForJobs)
		n.mu.Lock()
		n.jobsLeft = false
		n.mu.Unlock()
		time.Sleep(jobsPoll)
		n.wantPhase(t, Drained)
	})
}

func TestAwaitUndrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t)
		n.decide(t, true)
		waited := 0
		done := make(chan error, 1)
		go func() { done <- n.AwaitUndrained(t.Context(), func() { waited++ }) }()
		n.wantPhase(t, Drained)
		if waited == 0 || !n.Draining() {
			t.Error("a node that was drained before its start")
		}
		n.decide(t, false)
		check.NoError(t, <-done)
		n.wantPhase(t, Serving)
	})
}

func TestDrainForStop(t *testing.T) {
	const signIn = 6 * time.Second // and until it is noticed
	for name, c := range map[string]struct {
		others, connected bool
		took, over, late  time.Duration
	}{
		"others serve":   {true, true, announceTime + drainTime, drainTime, 0},
		"no connections": {true, false, drainTime, drainTime, 0},
		"no other node":  {false, true, 0, 0, 0},
		"some sign in":   {true, true, announceTime + drainTime + signIn, drainTime, signIn},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t)
				n.others, n.pub.late = c.others, c.late
				if !c.connected {
					n.pub.set(0)
					n.req.set(0)
				}
				began := time.Now()
				n.DrainForStop(t.Context())
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				check.EqualSlices(t, n.req.drains(), []time.Duration{c.over}, "drained over")
				n.endAnnouncement() // what consensus says does not matter any more
				if !n.Draining() || n.resigned != 1 {
					t.Errorf("draining %v, resigned %d times", n.Draining(), n.resigned)
				}
			})
		})
	}
}

// newTestCluster returns the Cluster of n.
func newTestCluster(n *testNode) *Cluster {
	return NewCluster(ClusterConfig{
		Self: "m1", ClusterID: "lab", UUID: "11111111-2222", Log: n.log, Own: func() *Runner { return n.Runner },
		Voters: func() []node.ID { return []node.ID{"m1"} }, Alive: func(node.ID) bool { return n.others }, Routes: n.routes,
		Audit: func(cause string) state.Audit { return state.Audit{By: "m1", At: 1, Cause: cause} },
		Find: func(name string) (node.ID, error) {
			if name != "" && name != "m1" {
				return "", adminapi.Errorf(adminapi.CodeNotFound, "", "no member")
			}
			return "m1", nil
		},
		Undecided: func(_ context.Context, err error) bool { return errors.Is(err, errUndecided) },
		NoQuorum:  func(err error) error { return adminapi.Errorf(adminapi.CodeNoQuorum, "start it", "no quorum: %v", err) },
		DrainTime: announceTime + drainTime,
	})
}

var errUndecided = errors.New("undecided")

func quiet(string, string, ...int) {}

func TestVerbs_DrainAndUndrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t)
		n.follow(t)
		v := Verbs{Of: func() (*Cluster, error) { return newTestCluster(n), nil }}
		var steps []string
		var percent []int
		p := func(step, _ string, done ...int) { steps, percent = append(steps, step), append(percent, done...) }
		out, err := v.Drain(t.Context(), adminapi.DrainRequest{Wait: true}, p)
		if err != nil || out.Node != "m1" || out.Role != adminapi.RoleVoter || len(out.Next) != 1 {
			t.Errorf("%+v, %v", out, err)
		}
		steps = slices.DeleteFunc(slices.Compact(steps), func(s string) bool { return s == "serving" }) // not started yet
		if want := []string{"announced", "handing-over", "drained"}; !slices.Equal(steps, want) {
			t.Errorf("steps %v, want %v", steps, want)
		}
		if len(percent) == 0 || percent[0] != 0 || percent[len(percent)-1] != 100 {
			t.Errorf("percent %v", percent)
		}
		if _, err := v.Undrain(t.Context(), adminapi.UndrainRequest{Wait: true}, quiet); err != nil {
			t.Error(err)
		}
		n.wantPhase(t, Serving)
	})
}

func TestVerbs_Errors(t *testing.T) {
	for name, c := range map[string]struct {
		lastNode, noQuorum, undrain bool
		node                        string
		code                        adminapi.Code
		text                        string
	}{
		"last node":            {lastNode: true, code: adminapi.CodeRefused, text: "those of m1 would have nowhere to go"},
		"unknown node":         {node: "m9", code: adminapi.CodeNotFound, text: "no member"},
		"drain without quorum": {noQuorum: true, code: adminapi.CodeNoQuorum, text: "which drain needs"},
		"undrain without quorum": {
			noQuorum: true, undrain: true, code: adminapi.CodeNoQuorum, text: "no quorum: undecided",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode(t)
			n.others = !c.lastNode
			if c.noQuorum {
				n.log.err = errUndecided
			}
			v := Verbs{Of: func() (*Cluster, error) { return newTestCluster(n), nil }}
			_, err := v.Drain(t.Context(), adminapi.DrainRequest{Node: c.node}, quiet)
			if c.undrain {
				_, err = v.Undrain(t.Context(), adminapi.UndrainRequest{Node: c.node}, quiet)
			}
			if adminapi.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Error(err)
			}
		})
	}
}

func TestHandOverAside(t *testing.T) {
	n := newTestNode(t)
	c := newTestCluster(n)
	check.Equal(t, c.CountAside(t.Context(), "m1"), 4, "aside")
	if left, why, err := c.HandOverAside(t.Context(), "m1"); left != 4 || why != "full" || err != nil {
		t.Errorf("%d left, %q, %v", left, why, err)
	}
}

// TestEmpty_WaitsForReturns waits, until it gives up, for each kind of return that the node takes with it, and not for
// those that were put aside.
func TestEmpty_WaitsForReturns(t *testing.T) {
	for name, c := range map[string]struct {
		returns  fakeReturns
		uncopied int
		waits    bool
	}{
		"kept":                      {fakeReturns{kept: 1}, 0, true},
		"for its master":            {fakeReturns{deferred: 1}, 0, true},
		"in its journal":            {fakeReturns{unstored: 1}, 0, true},
		"in its job cache alone":    {fakeReturns{}, 1, true},
		"put aside":                 {fakeReturns{aside: 1}, 0, false},
		"none that the others lack": {fakeReturns{}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTestNode(t)
				n.cfg.Returns, n.cfg.Cache = c.returns, fakeCache{c.uncopied}
				n.follow(t)
				last := ""
				newTestCluster(n).Empty(t.Context(), "m1", func(_, message string, _ ...int) { last = message })
				if got := strings.HasPrefix(last, "not all of the returns that it keeps were handed over"); got != c.waits {
					t.Errorf("the last message is %q", last)
				}
				n.wantPhase(t, Drained)
			})
		})
	}
}

// movingReturn is one return that moves on after so many looks.
type movingReturn struct {
	fakeReturns
	at, to string
	looks  int
}

func (m *movingReturn) count(where string) (n uint64) {
	if m.at == where {
		n = 1
	}
	if m.looks--; m.looks == 0 {
		m.at = m.to
	}
	return n
}

func (m *movingReturn) Kept() uint64     { return m.count("kept") }
func (m *movingReturn) Unstored() uint64 { return m.count("unstored") }
func (m *movingReturn) Deferred() uint64 { return m.count("deferred") }
func (m *movingReturn) Aside() int       { return int(m.count("aside")) }
func (m *movingReturn) Status() jobs.Status {
	return jobs.Status{Peers: []jobs.PeerStatus{{ID: "m2", Waiting: int(m.count("uncopied"))}}}
}

// TestReport_MovingReturn has a return go from one place to the next while the report is made: it is in that.
func TestReport_MovingReturn(t *testing.T) {
	for _, move := range [][2]string{
		{"kept", "unstored"}, {"kept", "deferred"}, {"unstored", "deferred"}, {"unstored", "uncopied"},
		{"deferred", "uncopied"}, {"deferred", "aside"},
	} {
		for looks := range 5 {
			m := &movingReturn{at: move[0], to: move[1], looks: looks + 1}
			n := newTestNode(t)
			n.cfg.Returns, n.cfg.Cache = m, m
			if r := n.Report(); r.Kept+r.Deferred+r.Unstored+uint64(r.Aside) == 0 {
				t.Errorf("from %s to %s after %d looks: it is nowhere", move[0], move[1], looks+1)
			}
		}
	}
}
