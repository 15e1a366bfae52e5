package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// data is an event's msgpack.
var data = []byte{0x81, 0xa1, 'n', 0x01}

// bus is a master's event bus.
type bus struct {
	mu    sync.Mutex
	see   func(tag string, data []byte)
	fired []string
	err   error
}

func (b *bus) Subscribe(f func(string, []byte)) func() {
	b.see = f
	return func() {}
}

func (b *bus) FireRaw(ctx context.Context, tag string, data []byte) error {
	if err := ctx.Err(); err != nil { // as a master's bus does
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fired = append(b.fired, tag+" "+fmt.Sprintf("%x", data))
	return b.err
}

func (b *bus) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.fired)
}

// net carries batches between mirrors; every second attempt is taken and its answer lost.
type net struct {
	mu      sync.Mutex
	mirrors map[node.ID]*Mirror
	lossy   bool
	calls   int
}

type end struct {
	net  *net
	self node.ID
}

func (e end) Members() (ids []node.ID) {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	for id := range e.net.mirrors {
		if id != e.self {
			ids = append(ids, id)
		}
	}
	return ids
}

func (e end) Send(_ context.Context, to node.ID, body []byte) error {
	e.net.mu.Lock()
	e.net.calls++
	lose, m := e.net.lossy && e.net.calls%2 == 1, e.net.mirrors[to]
	e.net.mu.Unlock()
	from := func(context.Context) (node.ID, bool) { return e.self, true }
	w := httptest.NewRecorder()
	m.Handler(from).ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body)))
	if w.Code != http.StatusOK || lose {
		return errors.New("no answer")
	}
	return nil
}

func start(t *testing.T, n *net, id node.ID, tags ...string) *bus {
	t.Helper()
	b := &bus{}
	m, err := New(Config{Tags: tags, Bus: b, Members: end{n, id}.Members, Send: end{n, id}.Send, BackoffMin: time.Millisecond})
	require.NoError(t, err)
	n.mu.Lock()
	n.mirrors[id] = m
	n.mu.Unlock()
	require.NoError(t, m.Open(t.Context()))
	t.Cleanup(func() { m.Close() })
	return b
}

func TestMirror_OnceAndInOrder(t *testing.T) {
	n := &net{mirrors: map[node.ID]*Mirror{}, lossy: true}
	a, b, c := start(t, n, "a", "my/*"), start(t, n, "b", "*"), start(t, n, "c")
	var want []string
	const events = 3000
	for i := range events {
		a.see(fmt.Sprintf("my/%d", i), data)
		a.see("other", data)
		want = append(want, fmt.Sprintf("cluster/event/a/my/%d %x", i, data))
	}
	for name, got := range map[string]*bus{"b": b, "c": c} {
		patience.WaitFor(t, "all events at "+name, func() bool { return got.count() >= events })
		if !slices.Equal(got.fired, want) {
			t.Errorf("%s: %d events, %.200q", name, len(got.fired), got.fired)
		}
	}
	if a.count() != 0 {
		t.Errorf("%.200q came back", a.fired)
	}
	b.see("cluster/event/a/my/1", data) // what its bus delivers when it was mirrored
	b.see("last", data)
	patience.WaitFor(t, "the event of b", func() bool { return a.count() > 0 })
	if a.count() != 1 {
		t.Errorf("mirrored again: %q", a.fired)
	}
}

func TestTags(t *testing.T) {
	g, err := compileGlobs([]string{"*"})
	require.NoError(t, err)
	for tag, want := range map[string]bool{
		"salt/minion/web1/start": true, "salt/job/1/ret/web1": true, "salt/key": true, "": false, "a\n\nb": false,
		"cluster/event/a/x": false, "cluster/peer/join": false, "site/salt/reactors/manage/add": false,
		"salt/event/exit":        false,
		"rotate_cluster_aes_key": false, "__keepalive": false, string(make([]byte, maxTag+1)): false,
	} {
		if g.matchesTag(tag) != want {
			t.Errorf("%q: %v", tag, !want)
		}
	}
}

func TestQueueIsBounded(t *testing.T) {
	now := time.Unix(0, 0)
	q := newQueue(Limits{Events: 3, Bytes: 100, Age: time.Second}, func() time.Time { return now })
	for i := range 5 {
		if dropped := q.addEvent(event{fmt.Sprint(i), data}); dropped != max(0, min(1, i-2)) {
			t.Errorf("event %d: %d dropped", i, dropped)
		}
	}
	b, _ := q.takeBatch()
	if b.first != 2 || len(b.events) != 3 || b.events[0].tag != "2" {
		t.Fatalf("%+v", b)
	}
	q.removeSent(b.first + 1)
	if b, _ = q.takeBatch(); b.first != 3 || len(b.events) != 2 {
		t.Fatalf("%+v", b)
	}
	// itself stays: one is let through whatever its size
	if dropped := q.addEvent(event{"big", make([]byte, 1000)}); dropped != 2 {
		t.Errorf("%d dropped for one large", dropped)
	}
	now = now.Add(time.Hour)
	if b, old := q.takeBatch(); len(b.events) != 0 || old != 1 || q.bytes != 0 {
		t.Errorf("%+v %d %d", b, old, q.bytes)
	}
}

func TestPeerThatSendsAnything(t *testing.T) {
	b := &bus{}
	m, err := New(Config{Bus: b, Members: end{&net{}, "a"}.Members})
	require.NoError(t, err)
	good := batch{run: 1, first: 7, events: []event{{"my/1", data}, {"salt/reactors/manage/add", data},
		{"cluster/peer/x", data}}}.encodeBatch()
	ask := func(body []byte, known bool) int {
		w := httptest.NewRecorder()
		m.Handler(func(context.Context) (node.ID, bool) { return "b", known }).ServeHTTP(w,
			httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body)))
		return w.Code
	}
	check.Equal(t, ask(good, false), http.StatusForbidden, "stranger")
	for _, body := range [][]byte{nil, good[:len(good)-1], append(slices.Clone(good), 0), []byte("SCDevt\x00\x02")} {
		check.Equal(t, ask(body, true), http.StatusBadRequest, body)
	}
	if code := ask(good, true); code != http.StatusOK || b.count() != 1 {
		t.Errorf("%d, %q", code, b.fired)
	}
	if code := ask(good, true); code != http.StatusOK || b.count() != 1 {
		t.Errorf("the same again: %d, %q", code, b.fired)
	}
}

// A batch whose sender goes away while it is fired comes again: it is shown, and once.
func TestSenderGoesAway(t *testing.T) {
	b := &bus{}
	m, err := New(Config{Bus: b, Members: end{&net{}, "a"}.Members})
	require.NoError(t, err)
	body := batch{run: 1, first: 7, events: []event{{"my/1", data}, {"my/2", data}}}.encodeBatch()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{gone, t.Context()} {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, Path, bytes.NewReader(body))
		m.Handler(func(context.Context) (node.ID, bool) { return "b", true }).ServeHTTP(httptest.NewRecorder(), r)
	}
	want := []string{fmt.Sprintf("cluster/event/b/my/1 %x", data), fmt.Sprintf("cluster/event/b/my/2 %x", data)}
	if !slices.Equal(b.fired, want) {
		t.Errorf("%q are shown", b.fired)
	}
}

func FuzzParseBatch(f *testing.F) {
	f.Add(batch{run: 1, first: 2, events: []event{{"my/1", data}}}.encodeBatch())
	f.Add(batch{}.encodeBatch())
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := parseBatch(body)
		if err != nil {
			return
		}
		if !bytes.Equal(b.encodeBatch(), body) {
			t.Fatalf("%x became %x", body, b.encodeBatch())
		}
	})
}
