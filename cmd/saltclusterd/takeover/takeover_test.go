package takeover

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/router"
)

// calls records what is called, in order. A call that is in fail returns its error.
type calls struct {
	mu   sync.Mutex
	list []string
	fail map[string]error
}

func (c *calls) add(call string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, call)
	return c.fail[call]
}

func (c *calls) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}

type fakePublish struct{ *calls }

func (f fakePublish) Freeze(context.Context) error { return f.add("publish freeze") }
func (f fakePublish) Thaw()                        { _ = f.add("publish thaw") }
func (f fakePublish) Hand()                        { _ = f.add("publish hand") }
func (f fakePublish) Stats() edge.PubStats         { return edge.PubStats{} }
func (f fakePublish) Import(s edge.State) error    { return f.add("publish import " + string(s.Record)) }
func (f fakePublish) Export(context.Context) (edge.State, error) {
	return edge.State{Record: []byte("4505")}, nil // at the same time as the requests
}

type fakeRequests struct {
	*calls
	unanswered atomic.Int64
	pass       func(edge.Answer)
}

func (f *fakeRequests) Freeze(context.Context) error { return f.add("requests freeze") }
func (f *fakeRequests) Thaw()                        { _ = f.add("requests thaw") }
func (f *fakeRequests) Import(s edge.State) error {
	return f.add("requests import " + string(s.Record))
}
func (f *fakeRequests) Unanswered() int             { return int(f.unanswered.Load()) }
func (f *fakeRequests) Finish(a edge.Answer)        { _ = f.add("requests finish " + string(a.Body)) }
func (f *fakeRequests) Orphan() int                 { _ = f.add("requests orphan"); return 0 }
func (f *fakeRequests) Hand(pass func(edge.Answer)) { f.pass = pass; _ = f.add("requests hand") }
func (f *fakeRequests) Export(context.Context) (edge.State, error) {
	return edge.State{Record: []byte("4506")}, nil
}

type fakeSubscription struct {
	*calls
	file *os.File
}

func (f fakeSubscription) Pause(context.Context) error { return f.add("subscription pause") }
func (f fakeSubscription) Unpause()                    { _ = f.add("subscription unpause") }
func (f fakeSubscription) Hand()                       { _ = f.add("subscription hand") }
func (f fakeSubscription) Export() ([]byte, int, error) {
	return []byte("sub"), int(f.file.Fd()), nil
}
func (f fakeSubscription) Import(b []byte, fd int) error {
	return errors.Join(unix.Close(fd), f.add("subscription import "+string(b)))
}

type fakeHub struct{ *calls }

func (f fakeHub) Freeze(context.Context) error { return f.add("hub freeze") }
func (f fakeHub) Thaw()                        { _ = f.add("hub thaw") }
func (f fakeHub) Hand()                        { _ = f.add("hub hand") }
func (f fakeHub) Export() []byte               { return []byte("hub") }
func (f fakeHub) ExportRecent() []byte         { return []byte("recent") }
func (f fakeHub) Import(b []byte) error        { return f.add("hub import " + string(b)) }
func (f fakeHub) ImportRecent(b []byte) error  { return f.add("hub import " + string(b)) }

type fakeIntake struct{ *calls }

func (f fakeIntake) Export() []byte        { return []byte("intake") }
func (f fakeIntake) Import(b []byte) error { return f.add("intake import " + string(b)) }

type fakeLog struct{ *calls }

func (f fakeLog) View() state.View { return state.New().View() }
func (f fakeLog) Preload(r io.Reader) error {
	b, err := io.ReadAll(r)
	if len(b) == 0 {
		err = errors.Join(err, errors.New("empty snapshot"))
	}
	return errors.Join(err, f.add("log preload"))
}

type fakeClock struct{ *calls }

func (f fakeClock) Last() hlc.Timestamp { return 7 }
func (f fakeClock) GoOn(last hlc.Timestamp) {
	if last == 7 {
		_ = f.add("clock")
	}
}

type fakeJobs struct{ *calls }

func (f fakeJobs) Inherit(jids []string) { _ = f.add("inherit " + strings.Join(jids, " ")) }

// fakeParts returns parts of one process and what is called of them.
func fakeParts(t *testing.T, fail map[string]error) (Parts, *fakeRequests, *calls) {
	t.Helper()
	c := &calls{fail: fail}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	requests := &fakeRequests{calls: c}
	return Parts{
		Self: "m1", Publish: fakePublish{c}, Requests: requests, Subscription: fakeSubscription{c, r}, Hub: fakeHub{c},
		Intake: fakeIntake{c}, Log: fakeLog{c}, Clock: fakeClock{c}, Jobs: router.NewJobs(0), Published: fakeJobs{c},
		Routes: func() router.View { return router.View{Nodes: []router.Node{{ID: "m2"}}, Leader: "m2"} },
		SetRoutes: func(nodes []router.Node, leader node.ID) {
			_ = c.add("routes " + string(nodes[0].ID) + " " + string(leader))
		},
	}, requests, c
}

// fakeTakeover is both sides of a takeover in one process.
type fakeTakeover struct {
	old              *oldSide
	side             *NewSide
	requests         *fakeRequests // of the old process
	oldCalls, called *calls
}

func newFakeTakeover(t *testing.T, failOld, failNew map[string]error) *fakeTakeover {
	t.Helper()
	ours, theirs, err := handover.Pair()
	require.NoError(t, err)
	fd, err := unix.FcntlInt(theirs.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err = errors.Join(err, theirs.Close()); err != nil {
		t.Fatal(err)
	}
	f := &fakeTakeover{}
	log := slog.New(slog.DiscardHandler)
	oldParts, requests, oldCalls := fakeParts(t, failOld)
	oldParts.Jobs.Record("1", "m1", 0)
	oldParts.Jobs.Record("2", "m2", 0)
	f.requests, f.oldCalls = requests, oldCalls
	u := NewUpgrader(Config{
		Node: "m1", Sockets: NewSockets(), Logger: log,
		Doors: func() []io.Closer { return []io.Closer{closer(func() error { return oldCalls.add("close door") })} },
	})
	u.SetProcess(Process{Notify: func(s string) { _ = oldCalls.add(s) }})
	f.old = &oldSide{
		Upgrader: u, progress: func(string, string, ...int) {}, conn: ours, pid: 42, ended: make(chan struct{}),
		svc: &Service{
			UUID: "uuid", Parts: oldParts, Fail: func(err error) { _ = oldCalls.add(err.Error()) },
			Resign:     func(context.Context) { _ = oldCalls.add("resign") },
			RetirePort: func(context.Context) error { return nil },
			Release:    func() error { return oldCalls.add("release") },
		},
	}
	parts, _, called := fakeParts(t, failNew)
	f.called = called
	u = NewUpgrader(Config{Logger: log})
	u.SetProcess(Process{Takeover: uintptr(fd)})
	if !u.TakesOver() {
		t.Error("a process with a descriptor does not take over")
	}
	f.side, err = u.NewSide(NewSideConfig{
		Version: "next", Sockets: NewSockets(), Logger: log,
		ReadHost:  func(context.Context) error { return called.add("read host") },
		Addresses: func() []string { return []string{"127.0.0.1:0"} },
		BindDoors: func(context.Context) error { return called.add("bind doors") },
		Build: func(_ context.Context, uuid string) (Parts, error) {
			return parts, called.add("build " + uuid)
		},
		OpenShared: func(context.Context) error { return called.add("open shared") },
		CloseDoors: func() { _ = called.add("close doors") },
	})
	require.NoError(t, err)
	t.Cleanup(func() { ours.Close(); f.side.Close(); f.side.cfg.Sockets.Release("tcp", "127.0.0.1:0") })
	return f
}

type closer func() error

func (c closer) Close() error { return c() }

// run runs both sides until the new one serves, or the takeover has failed.
func (f *fakeTakeover) run(t *testing.T) (oldErr, newErr error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f.side.TakeOver(t.Context()) }()
	_, oldErr = f.old.sendBase(t.Context())
	if oldErr == nil {
		oldErr = f.old.handOver(t.Context())
	}
	if oldErr != nil {
		_ = f.old.conn.Close()
	}
	return oldErr, <-done
}

func TestTakeover_Order(t *testing.T) {
	f := newFakeTakeover(t, nil, nil)
	if oldErr, newErr := f.run(t); oldErr != nil || newErr != nil {
		t.Fatalf("%v, %v", oldErr, newErr)
	}
	want := []string{
		"resign", "requests freeze", "publish freeze", "subscription pause", "hub freeze",
		"subscription hand", "hub hand", "requests hand", "publish hand", errHandedOver.Error(),
	}
	check.EqualSlices(t, f.oldCalls.all(), want, "old process")
	want = []string{
		"read host", "bind doors", "build uuid", "log preload", "inherit 1", "open shared",
		"publish import 4505", "requests import 4506", "clock", "inherit 1", "routes m2 m2",
		"hub import hub", "hub import recent", "intake import intake", "subscription import sub",
	}
	check.EqualSlices(t, f.called.all(), want, "new process")
	if jids, publishers := f.side.parts.Jobs.Latest(2); !slices.Equal(jids, []string{"2", "1"}) || publishers[0] != "m2" {
		t.Errorf("jobs %q of %q", jids, publishers)
	}
	if !f.old.HandedOver() || !f.old.leaving(&Service{Failed: func() bool { return false }}) {
		t.Error("the old process does not report that it has handed over")
	}
}

// A failure before "go" resumes the old process, in the reverse order of the freeze.
func TestTakeover_Failure(t *testing.T) {
	failure := errors.New("no room")
	thawed := []string{"hub thaw", "subscription unpause", "publish thaw", "requests thaw"}
	for _, c := range []struct {
		old, next string // the call that fails
		thaws     []string
	}{
		{old: "requests freeze"},
		{old: "subscription pause", thaws: thawed[2:]},
		{next: "read host"}, {next: "bind doors"}, {next: "build uuid"}, {next: "log preload"}, {next: "open shared"},
		{next: "publish import 4505", thaws: thawed},
		{next: "requests import 4506", thaws: thawed},
		{next: "hub import recent", thaws: thawed},
		{next: "intake import intake", thaws: thawed},
		{next: "subscription import sub", thaws: thawed},
	} {
		f := newFakeTakeover(t, map[string]error{c.old: failure}, map[string]error{c.next: failure})
		oldErr, newErr := f.run(t)
		if oldErr == nil || newErr == nil || !strings.Contains(oldErr.Error(), failure.Error()) {
			t.Errorf("%+v: %v, %v", c, oldErr, newErr)
		}
		if c.next != "" && oldErr != nil && oldErr.Error() != "the new process refuses: no room" {
			t.Errorf("%+v: %v", c, oldErr)
		}
		thaws := slices.DeleteFunc(f.oldCalls.all(), func(call string) bool {
			return !strings.HasSuffix(call, "thaw") && !strings.HasSuffix(call, "unpause") && !strings.HasSuffix(call, "hand")
		})
		check.EqualSlices(t, thaws, c.thaws, c)
		if last := f.called.all(); last[len(last)-1] != "close doors" {
			t.Errorf("%+v: the doors are open: %q", c, last)
		}
		if f.old.HandedOver() {
			t.Errorf("%+v: handed over", c)
		}
	}
}

func TestFinish_Order(t *testing.T) {
	f := newFakeTakeover(t, nil, nil)
	if other := errors.New("other"); !errors.Is(f.old.Finish(t.Context(), other), other) {
		t.Error("the error of a process that serves is lost")
	}
	if oldErr, newErr := f.run(t); oldErr != nil || newErr != nil {
		t.Fatalf("%v, %v", oldErr, newErr)
	}
	isMain := make(chan struct{})
	f.side.Follow(func() { close(isMain) })
	f.requests.unanswered.Store(1)
	done := make(chan error, 1)
	go func() { done <- f.old.Finish(t.Context(), errHandedOver) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, f.side.AwaitFree(ctx))
	<-isMain
	select {
	case <-f.side.Ended():
		t.Error("the new process does not wait for an answer that is due")
	default:
	}
	f.requests.pass(edge.Answer{Kind: edge.Answered, Body: []byte("answer")})
	f.requests.pass(edge.Answer{Kind: edge.Dropped, Body: []byte("a request that is not repeated")})
	f.requests.unanswered.Store(0)
	check.NoError(t, <-done)
	<-f.side.Ended()
	calls := f.called.all()
	want := []string{"requests finish answer", "requests finish ", "requests orphan"}
	check.EqualSlices(t, calls[len(calls)-3:], want, "new process")
	for _, call := range []string{"MAINPID=42", "close door", "release"} {
		if !slices.Contains(f.oldCalls.all(), call) {
			t.Errorf("old process: no %q in %q", call, f.oldCalls.all())
		}
	}
}

// The end of either process fails the takeover.
func TestTakeover_ProcessEnds(t *testing.T) {
	f := newFakeTakeover(t, nil, nil)
	require.NoError(t, f.side.Close())
	if _, err := f.old.sendBase(t.Context()); err == nil || err.Error() != "the new process has ended" {
		t.Errorf("old process: %v", err)
	}
	if err := f.side.TakeOver(t.Context()); err == nil {
		t.Error("a new process without the old one takes over")
	}
}

// A program whose state has another version is started anew.
func TestSendBase_UnknownVersion(t *testing.T) {
	f := newFakeTakeover(t, nil, nil)
	h := hello{State: handover.StateVersion + 1, Version: "v"}
	require.NoError(t, f.side.conn.Send(t.Context(), msgHello, h.encodeRecord()))
	_, err := f.old.sendBase(t.Context())
	if r, ok := errors.AsType[*RestartError](err); !ok || !strings.Contains(r.Reason, "its state has version") {
		t.Errorf("%v", err)
	}
}

func TestReadDescriptor(t *testing.T) {
	for text, want := range map[string]uintptr{"": 0, "3": 3, "17": 17, "2": 0, "x": 0} {
		got, err := ReadDescriptor(func(string) string { return text })
		if got != want || (err == nil) != (want > 0 || text == "") {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
