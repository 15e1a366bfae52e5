package trace

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// collector stands in for OpenTelemetry's: it takes what is posted as JSON to /v1/traces.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans map[string]otlpSpan // by name and node
	raw   string
	more  chan struct{}
}

func newCollector(t *testing.T) *collector {
	c := &collector{spans: map[string]otlpSpan{}, more: make(chan struct{}, 100)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var e export
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" ||
			json.Unmarshal(raw, &e) != nil {
			t.Errorf("%s %s: %v: %s", r.Method, r.URL, err, raw)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw += string(raw)
		for _, rs := range e.ResourceSpans {
			attrs := map[string]string{}
			for _, a := range rs.Resource.Attributes {
				attrs[a.Key] = *a.Value.String
			}
			if attrs["service.name"] != "saltclusterd" || attrs["service.version"] != "1.2" ||
				attrs["service.namespace"] != "production" {
				t.Errorf("%v", attrs)
			}
			for _, s := range rs.ScopeSpans[0].Spans {
				c.spans[attrs["service.instance.id"]+" "+s.Name] = s
			}
		}
		c.more <- struct{}{}
	}))
	t.Cleanup(c.Close)
	return c
}

func open(t *testing.T, cfg Config) *Tracer {
	t.Helper()
	cfg.Cluster, cfg.Version, cfg.Logger = "production", "1.2", slog.New(slog.DiscardHandler)
	tr := New(cfg)
	require.NoError(t, tr.Open(t.Context()))
	return tr
}

// A request that m1 relays to m2: one trace, whose spans are each other's parents as they should be.
func TestTracer_RelayedRequest(t *testing.T) {
	c := newCollector(t)
	m1 := open(t, Config{Endpoint: c.URL + "/v1/traces", Node: "m1"})
	m2 := open(t, Config{Endpoint: c.URL + "/v1/traces", Node: "m2", OneIn: 1_000_000, IDs: true})

	r := m1.Begin(time.Now(), Parent{})
	r.Step("open")
	r.Step("wall")
	r.Command("_pillar", "web1")
	r.Step("route")
	r.Carry("relay", "m2")
	header := Outgoing(r.With(t.Context()))
	far := m2.Begin(time.Now(), ParentOf(Incoming(t.Context(), header)))
	far.Command("_pillar", "web1")
	far.Carry("master", "")
	far.Failed()
	far.End(-1)
	r.Step("reply")
	r.End(42)
	r.End(43) // does not count
	r.Step("late")
	m1.Close()
	m2.Close()

	want := map[string]string{ // each span's parent
		"m1 _pillar": "", "m1 accept": "m1 _pillar", "m1 open": "m1 _pillar", "m1 wall": "m1 _pillar",
		"m1 route": "m1 _pillar",
		"m1 relay": "m1 _pillar", "m1 reply": "m1 _pillar", "m2 _pillar": "m1 relay", "m2 accept": "m2 _pillar",
		"m2 master": "m2 _pillar",
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans) != len(want) {
		t.Errorf("%d spans, want %d: %s", len(c.spans), len(want), c.raw)
	}
	for name, parent := range want {
		s := c.spans[name]
		if s.TraceID != c.spans["m1 _pillar"].TraceID || len(s.TraceID) != 32 || len(s.SpanID) != 16 ||
			s.ParentID != c.spans[parent].SpanID {
			t.Errorf("%s: %+v", name, s)
		}
		if len(s.Start) != 19 || s.End < s.Start {
			t.Errorf("%s: from %s to %s", name, s.Start, s.End)
		}
		if failed := s.Status != nil && s.Status.Code == statusError; failed != (name == "m2 master" ||
			name == "m2 _pillar") {
			t.Errorf("%s: failed %t", name, failed)
		}
	}
	if s := c.spans["m1 _pillar"]; s.Kind != kindServer || c.spans["m1 relay"].Kind != kindClient ||
		s.Attributes[1].Value.Int != "42" {
		t.Errorf("%+v", s)
	}
	if strings.Count(c.raw, "web1") != 1 { // m2 was asked for ids
		t.Errorf("ids: %s", c.raw)
	}
}

func TestSampling(t *testing.T) {
	tr := New(Config{Endpoint: "http://127.0.0.1:1", OneIn: 10})
	n := 0
	for range 1000 {
		if tr.Begin(time.Now(), Parent{}) != nil {
			n++
		}
	}
	if n != 100 {
		t.Errorf("%d of 1000 are traced", n)
	}
	if New(Config{OneIn: 1}) != nil {
		t.Error("traces without a collector")
	}
}

// A collector that hangs, or is away, costs spans and nothing else.
func TestTracer_CollectorHangs(t *testing.T) {
	hung := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hung:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(hung)
	reg := prometheus.NewRegistry()
	tr := open(t, Config{Endpoint: server.URL, Registerer: reg, Every: time.Millisecond})
	const requests = queueSize + 2*batchSize
	for range requests {
		tr.Begin(time.Now(), Parent{}).End(0)
	}
	start := time.Now()
	tr.Close()
	if took := time.Since(start); took > closeWithin+5*time.Second {
		t.Errorf("closed after %s", took)
	}
	sum := 0.0
	for _, outcome := range []string{"failed", "dropped", "sent"} {
		sum += testutil.ToFloat64(tr.spans.WithLabelValues(outcome))
	}
	if sum != requests || testutil.ToFloat64(tr.spans.WithLabelValues("sent")) != 0 ||
		testutil.ToFloat64(tr.spans.WithLabelValues("dropped")) == 0 {
		t.Errorf("%v of %d are counted", sum, requests)
	}
}

// A request has no end of steps when it is tried on one node after another.
func TestStepsAreBounded(t *testing.T) {
	r := New(Config{Endpoint: "http://127.0.0.1:1"}).Begin(time.Now(), Parent{})
	for range 10 * maxSteps {
		r.Carry("relay", "m2")
	}
	check.Equal(t, len(r.steps), maxSteps, "steps")
}

func TestParseParent(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	p := ParseParent(good)
	if !p.sampled || p.traceparent() != good {
		t.Errorf("%+v", p)
	}
	if p := ParseParent(strings.TrimSuffix(good, "1") + "0"); p.sampled || p.trace == [16]byte{} {
		t.Errorf("%+v", p)
	}
	if p := ParseParent("cc" + good[2:] + "-more"); !p.sampled {
		t.Error("a later version")
	}
	for _, bad := range []string{
		"", "00", good + "-more", "ff" + good[2:], strings.ToUpper(good), "cc" + good[2:] + "more",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		strings.Replace(good, "-", "_", 1), strings.Replace(good, "a", "g", 1),
	} {
		check.Equal(t, ParseParent(bad), (Parent{}), bad)
	}
	if ctx := Incoming(t.Context(), "nonsense"); ctx != t.Context() || ParentOf(ctx).Sampled() {
		t.Error("nonsense is a parent")
	}
}

// FuzzParseParent: what is taken for a parent is one of the standard's, and is said again as it came.
func FuzzParseParent(f *testing.F) {
	for _, seed := range []string{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-the-future-will-be-like", "ff-0-0-0", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		p := ParseParent(header)
		if p == (Parent{}) {
			return
		}
		if len(header) < headerSize || !strings.HasPrefix(header[3:], p.traceparent()[3:headerSize-2]) {
			t.Errorf("%q became %q", header, p.traceparent())
		}
	})
}

// What is not traced costs nothing: no allocation, whatever is noted about it.
func TestTracer_UntracedAllocatesNothing(t *testing.T) {
	ctx, sampled := context.Background(), New(Config{Endpoint: "http://127.0.0.1:1", OneIn: 1_000_000})
	sampled.isSampled() // the one
	for name, tr := range map[string]*Tracer{"off": nil, "not this one": sampled} {
		if n := testing.AllocsPerRun(1000, func() { untraced(ctx, tr) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func untraced(ctx context.Context, tr *Tracer) {
	r := tr.Begin(time.Time{}, Parent{})
	r.Step("open")
	r.Command("_return", "web1")
	r.Carry("relay", "m2")
	if Outgoing(r.With(ctx)) != "" || ParentOf(Incoming(ctx, "")).Sampled() {
		panic("it is traced")
	}
	r.Failed()
	r.End(1)
}

func BenchmarkOff(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		untraced(context.Background(), nil)
	}
}

func BenchmarkOn(b *testing.B) {
	b.ReportAllocs()
	tr := New(Config{Endpoint: "http://127.0.0.1:1", OneIn: 1})
	for b.Loop() {
		r := tr.Begin(time.Now(), Parent{})
		r.Step("open")
		r.Step("wall")
		r.Command("_pillar", "web1")
		r.Step("route")
		r.Carry("master", "")
		r.Step("reply")
		r.End(1)
	}
}
