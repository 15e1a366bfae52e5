package sidecar

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/trace"
)

// told is what a collector has heard: by trace the names of spans, in their order.
type told struct {
	raw   string
	paths [][]string
}

func (h *told) hear(t *testing.T, w *world) (done func()) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var e struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct{ TraceID, Name string }
				}
			}
		}
		if err != nil || json.Unmarshal(raw, &e) != nil {
			t.Errorf("%v: %s", err, raw)
			return
		}
		h.raw += string(raw)
		last := ""
		for _, s := range e.ResourceSpans[0].ScopeSpans[0].Spans {
			if s.TraceID != last {
				h.paths, last = append(h.paths, nil), s.TraceID
			}
			h.paths[len(h.paths)-1] = append(h.paths[len(h.paths)-1], s.Name)
		}
	}))
	tr := trace.New(trace.Config{Endpoint: server.URL, Node: "a", Logger: slog.New(slog.DiscardHandler), Every: time.Hour})
	require.NoError(t, tr.Open(t.Context()))
	w.proxy.cfg.Trace = tr
	return func() {
		tr.Close()
		server.Close()
	}
}

// askTraced sends a request as the edge and relay do, which begin its trace.
func (w *world) askTraced(t *testing.T, body []byte) []byte {
	t.Helper()
	got := make(chan []byte, 2)
	x := &request{body: body, at: time.Now(), to: respondTo(got)}
	x.traceBy(w.proxy.cfg.Trace, trace.Parent{})
	ended := make(chan struct{})
	x.to = endingResponder{x.to, ended}
	w.proxy.openRequest(x)
	select {
	case <-ended:
		return <-got
	case <-time.After(30 * time.Second):
		t.Fatal("neither answered nor dropped")
		return nil
	}
}

// The way of requests that are answered by this node's master, by another's, refused, signed in; nothing of what they
// say is told.
func TestTrace_RequestSteps(t *testing.T) {
	w, h := newWorld(t), &told{}
	done := h.hear(t, w)
	w.askTraced(t, w.request(t, map[string]any{"cmd": "_pillar", "saltenv": "very-secret"}))
	w.askTraced(t, w.signIn())
	w.askTraced(t, []byte("nonsense"))
	w.askTraced(t, w.request(t, map[string]any{"cmd": "made-up-by-a-minion"}))
	i := slices.IndexFunc(w.view.Nodes, func(n router.Node) bool { return n.ID == "a" })
	w.view.Nodes[i].MasterUp = false
	w.askTraced(t, w.request(t, map[string]any{"cmd": "_pillar"}))
	done()
	want := [][]string{
		{"_pillar", "accept", "open", "wall", "route", "master", "reply"},
		{"_auth", "accept", "open", "sign-in"},
		{"request", "accept", "open"},
		{"unknown", "accept", "open", "wall", "route"},
		{"_pillar", "accept", "open", "wall", "route", "relay", "reply"},
	}
	for i, path := range want {
		if i >= len(h.paths) || !slices.Equal(h.paths[i], path) {
			t.Errorf("request %d went another way than %v: %v", i, path, h.paths)
		}
	}
	for _, secret := range []string{"web1", "very-secret", "made-up", "BEGIN PUBLIC", nonce} {
		if strings.Contains(h.raw, secret) {
			t.Errorf("%s is told", secret)
		}
	}
}

// The header goes to another node, and what that does belongs to the same trace, whatever its own ratio says.
func TestTrace_ContinuedAtPeer(t *testing.T) {
	headers := make(chan string, 1)
	parents := make(chan trace.Parent, 1)
	peer := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		headers <- r.Header.Get(trace.Header)
		relay.Handler(receives{parents}, func(context.Context) (node.ID, bool) { return "a", true }, 0).ServeHTTP(rw, r)
	}))
	defer peer.Close()
	client := relay.NewClient(peer.Client())
	tr := trace.New(trace.Config{Endpoint: "http://127.0.0.1:1"})
	r := tr.Begin(time.Now(), trace.Parent{})
	to := node.ID(strings.TrimPrefix(peer.URL, "https://"))
	for _, on := range []bool{true, false} {
		ctx := t.Context()
		if on {
			r.Carry("relay", "b")
			ctx = r.With(ctx)
		}
		if _, err := client.Do(ctx, to, []byte("x"), netip.AddrPort{}); err != nil {
			t.Fatal(err)
		}
		header, parent := <-headers, <-parents
		if on != (header != "") || on != parent.Sampled() || on && parent != trace.ParseParent(header) {
			t.Errorf("%q, %+v", header, parent)
		}
	}
}

type receives struct{ parents chan trace.Parent }

func (r receives) ServeRelayed(ctx context.Context, _ node.ID, _ netip.AddrPort, _ []byte, to relay.Hands) {
	r.parents <- trace.ParentOf(ctx)
	to.Reply([]byte("y"))
}

func (r receives) ServeSignIn(ctx context.Context, from node.ID, remote netip.AddrPort, body []byte, to relay.Hands) {
	r.ServeRelayed(ctx, from, remote, body, to)
}

// Without tracing a request costs no allocation for it.
func TestTrace_OffAllocatesNothing(t *testing.T) {
	w := newWorld(t)
	x := &request{at: time.Now(), to: &fakeResponder{}}
	c := &call{request: x}
	c.peek.Cmd = "_pillar"
	n := testing.AllocsPerRun(1000, func() {
		x.traceBy(w.proxy.cfg.Trace, trace.Parent{})
		c.traceCommand()
		c.trace.Step("wall")
		c.trace.Carry("relay", "b")
		_ = c.trace.With(w.proxy.ctx)
		c.trace.Failed()
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
