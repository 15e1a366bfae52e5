package minionview

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/eventlog"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

// testCluster carries the questions of test nodes to each other.
type testCluster struct {
	mu    sync.Mutex
	nodes map[node.ID]http.Handler
	down  map[node.ID]bool
}

func (c *testCluster) stop(id node.ID)  { c.setDown(id, true) }
func (c *testCluster) start(id node.ID) { c.setDown(id, false) }

func (c *testCluster) setDown(id node.ID, down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down[id] = down
}

// RoundTrip implements http.RoundTripper.
func (c *testCluster) RoundTrip(r *http.Request) (*http.Response, error) {
	id := node.ID(r.URL.Host)
	c.mu.Lock()
	h, down := c.nodes[id], c.down[id]
	c.mu.Unlock()
	if h == nil || down {
		return nil, errors.New("down")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// others lists the nodes but one.
func (c *testCluster) others(self node.ID) (out []node.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.nodes {
		if id != self {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// testKeys are the accepted keys, by id.
type testKeys map[string]string

func (k testKeys) IDs() (out []string) {
	for id := range k {
		out = append(out, id)
	}
	return out
}

func (k testKeys) Accepted(id string) (string, bool) {
	pub, ok := k[id]
	return pub, ok
}

// testBus passes on what is fired.
type testBus chan event

func (b testBus) Takes() bool { return true }

func (b testBus) Fire(ctx context.Context, tag string, data map[string]any) error {
	select {
	case b <- event{tag, data}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// testNode is a View and what it sees. The keys of web1 and web2 are accepted.
type testNode struct {
	*View
	subscribers []edge.Subscriber
	bus         testBus
}

func newTestNode(t *testing.T, c *testCluster, id node.ID) *testNode {
	t.Helper()
	n := &testNode{bus: make(testBus)}
	master := &localmaster.Config{}
	n.View = New(Config{
		Connections: Connections{
			Self: id, Others: func() []node.ID { return c.others(id) }, Client: peerrpc.Client{HTTP: &http.Client{Transport: c}},
			Subscribers: func() []edge.Subscriber { return n.subscribers },
		},
		StateDir: t.TempDir(), Master: master, Keys: testKeys{"web1": "key", "web2": "key"}, Wall: wall.New(wall.Config{}),
		Routes: func() router.View {
			v := router.View{Self: id, Leader: id}
			for _, other := range append(c.others(id), id) {
				v.Nodes = append(v.Nodes, router.Node{ID: other, Weight: 100, Alive: true, MasterUp: true})
			}
			return v
		},
		Events: eventlog.New(), Bus: n.bus, Term: func() (uint64, bool) { return 1, true },
		Serving: func() bool { return true }, HandedOver: func() bool { return false }, PresenceEvents: config.PresenceOff,
		Logger: slog.New(slog.DiscardHandler),
	})
	mux := peerrpc.NewMux(func(context.Context) (node.ID, bool) { return "any", true })
	n.Handle(mux)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes == nil {
		c.nodes, c.down = map[node.ID]http.Handler{}, map[node.ID]bool{}
	}
	c.nodes[id] = mux
	return n
}

func (n *testNode) verbs() Verbs {
	view := func() (*View, error) { return n.View, nil }
	return Verbs{
		Connections: func() (Connections, error) { return n.cfg.Connections, nil }, Present: view, Events: view,
	}
}

// prove makes the node see a request of a minion with a payload version.
func (n *testNode) prove(minion string, version int) {
	n.cfg.Wall.Proven(n.cfg.Wall.Minion(minion, "key"), version)
}

// meet makes the node get a request of a minion from an address.
func (n *testNode) meet(minion string, from netip.AddrPort) {
	m := n.cfg.Wall.Minion(minion, "key")
	n.cfg.Wall.Met(&wall.Request{Minion: m, Remote: from, Peek: &saltwire.Peek{Cmd: "ping"}})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestMinions(t *testing.T) {
	c := &testCluster{}
	a, b := newTestNode(t, c, "m1"), newTestNode(t, c, "m2")
	newTestNode(t, c, "m3")
	c.stop("m3")
	a.subscribers = []edge.Subscriber{
		{Remote: netip.MustParseAddrPort("10.0.0.2:1")}, {Remote: netip.MustParseAddrPort("10.0.0.1:1")},
	}
	b.subscribers = []edge.Subscriber{{Remote: netip.MustParseAddrPort("10.0.0.3:1"), Heard: 5 * time.Second}}
	got, err := b.verbs().Minions(t.Context())
	var rows []string
	for _, s := range got.Subscribers {
		rows = append(rows, s.Node+" "+s.Remote)
	}
	if want := []string{"m1 10.0.0.1:1", "m1 10.0.0.2:1", "m2 10.0.0.3:1"}; err != nil || !slices.Equal(rows, want) {
		t.Errorf("subscribers are %v, want %v; %v", rows, want, err)
	}
	if got.From != "m2" || !slices.Equal(got.Missing, []string{"m3"}) || got.Subscribers[2].Silent != 5 {
		t.Errorf("answer is %+v", got)
	}
}

func TestHandledEvents(t *testing.T) {
	c := &testCluster{}
	a, b := newTestNode(t, c, "m1"), newTestNode(t, c, "m2")
	at := time.Unix(1_700_000_000, 0).UTC()
	a.cfg.Events.Note(eventlog.Event{At: at, Minion: "web1", Tag: "old"})
	b.cfg.Events.Note(eventlog.Event{At: at.Add(1), Minion: "web2", Tag: "other"})
	b.cfg.Events.Note(eventlog.Event{At: at.Add(2), Minion: "web1", Tag: "new", From: "m1", Python: true})
	for _, test := range []struct {
		minion string
		limit  int
		want   []string
	}{
		{"", 50, []string{"m2 m1 new", "m2 m2 other", "m1 m1 old"}},
		{"web1", 50, []string{"m2 m1 new", "m1 m1 old"}},
		{"", 2, []string{"m2 m1 new", "m2 m2 other"}},
		{"", -1, []string{"m2 m1 new"}},
	} {
		got, err := a.verbs().HandledEvents(t.Context(), test.minion, test.limit)
		var rows []string
		for _, e := range got.Events {
			rows = append(rows, e.Node+" "+e.From+" "+e.Tag)
		}
		if err != nil || !slices.Equal(rows, test.want) {
			t.Errorf("%d events of %q are %v, want %v; %v", test.limit, test.minion, rows, test.want, err)
		}
	}
	if _, err := handledRPC.Decode(map[string][]string{"limit": {"99999"}}); err == nil {
		t.Error("a limit beyond the log is let through")
	}
	x, err := a.verbs().ExplainEvent(t.Context(), "web1", "a/b")
	if err != nil || x.From != "m1" || x.Minion != "web1" || len(x.Nodes) != 1 || x.Others == nil {
		t.Errorf("explanation is %+v, %v", x, err)
	}
}

func TestVerbs_Witness(t *testing.T) {
	c := &testCluster{}
	newTestNode(t, c, "m1").subscribers = []edge.Subscriber{{Remote: netip.MustParseAddrPort("10.0.0.1:1")}}
	refuse := func(err error) func() (*View, error) { return func() (*View, error) { return nil, err } }
	witness := Connections{
		Self: "w1", Others: func() []node.ID { return c.others("w1") },
		Client: peerrpc.Client{HTTP: &http.Client{Transport: c}}, Subscribers: func() []edge.Subscriber { return nil },
	}
	verbs := Verbs{
		Connections: func() (Connections, error) { return witness, nil },
		Present:     refuse(ErrNoPresence), Events: refuse(ErrNoEvents),
	}
	if got, err := verbs.Minions(t.Context()); err != nil || len(got.Subscribers) != 1 || got.From != "w1" {
		t.Errorf("minions are %+v, %v", got, err)
	}
	_, presence := verbs.Presence(t.Context())
	_, handled := verbs.HandledEvents(t.Context(), "", 1)
	_, explained := verbs.ExplainEvent(t.Context(), "web1", "a")
	closed := newTestNode(t, c, "m2")
	closed.cfg.Serving = func() bool { return false }
	_, early := closed.verbs().Presence(t.Context())
	for _, test := range []struct {
		name string
		err  error
		want adminapi.Code
	}{
		{"presence of a witness", presence, adminapi.CodeRefused},
		{"handled events of a witness", handled, adminapi.CodeUnavailable},
		{"explanation of a witness", explained, adminapi.CodeUnavailable},
		{"presence before minions are served", early, adminapi.CodeUnavailable},
	} {
		if got := adminapi.CodeOf(test.err); got != test.want {
			t.Errorf("%s: %v", test.name, test.err)
		}
	}
}
