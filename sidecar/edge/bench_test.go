package edge

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/zmtp"
)

// BenchmarkPublish is the cost of a publication with nobody listening:
// encoding it and waking the workers.
func BenchmarkPublish(b *testing.B) {
	e := openPub(b, PubConfig{})
	p := Publication{Body: make([]byte, 1<<10)}
	b.ReportAllocs()
	for b.Loop() {
		e.Publish(p)
	}
}

// BenchmarkDeliver is a publication to 100 subscribers, per delivery.
func BenchmarkDeliver(b *testing.B) {
	for name, say := range subscriptions {
		b.Run(name, func(b *testing.B) {
			e := openPub(b, targeted)
			subscribeAll(b, e, say)
			p := Publication{Body: make([]byte, 1<<10)}
			b.ReportAllocs()
			for b.Loop() {
				e.Publish(p)
			}
			delivered(b, e)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/listeners, "ns/delivery")
		})
	}
}

// targeted knows minions with Salt's tcp transport.
var targeted = PubConfig{Identify: said, Targeted: func() bool { return true }}

// subscriptions are what a subscriber says first in each transport.
var subscriptions = map[string][]byte{
	"zeromq": zmtp.AppendSubscribe(hello("SUB"), nil), "tcp": tcpFrame("", text("m1")),
}

const listeners = 100

// subscribeAll brings so many subscribers who read.
func subscribeAll(t testing.TB, e *PubEdge, say []byte) {
	t.Helper()
	for range listeners {
		c := dialRaw(t, e)
		_, _ = c.Write(say)
		go func() { _, _ = io.Copy(io.Discard, c) }()
	}
	patience.WaitFor(t, "subscribed", func() bool { return e.Stats().Subscribers == listeners })
}

func delivered(t testing.TB, e *PubEdge) {
	t.Helper()
	// patience.WaitFor allocates, which would be counted.
	for end := time.Now().Add(testTimeout); ; time.Sleep(time.Millisecond) {
		s := e.Stats()
		if s.Delivered == s.Published*listeners {
			return
		}
		if time.Now().After(end) {
			t.Fatal("not delivered in time")
		}
	}
}

// TestAllocations: of a publication to a hundred subscribers, and of a request with its reply. Unlike times they do not
// depend on the machine.
func TestAllocations(t *testing.T) {
	pub, tcp := openPub(t, PubConfig{}), openPub(t, targeted)
	subscribeAll(t, pub, subscriptions["zeromq"])
	subscribeAll(t, tcp, subscriptions["tcp"])
	patience.WaitFor(t, "all are named", func() bool {
		return !slices.ContainsFunc(tcp.Subscribers(), func(s Subscriber) bool { return s.Topic != idTopic("m1") })
	})
	body := make([]byte, 1<<10)
	req := openReq(t, ReqConfig{}, echo)
	for _, h := range []struct {
		name    string
		do      func()
		ceiling float64
	}{
		{"a publication to a hundred", func() {
			pub.Publish(Publication{Body: body})
			delivered(t, pub)
		}, 12},
		{"a publication to a hundred with tcp", func() {
			tcp.Publish(Publication{Body: body})
			delivered(t, tcp)
		}, 16},
		{"a request and its reply", asker(t, req, "zeromq"), 8},
		{"a request and its reply with tcp", asker(t, req, "tcp"), 9},
	} {
		h.do()
		n := testing.AllocsPerRun(100, h.do)
		t.Logf("%s: %.0f allocations", h.name, n)
		if n > h.ceiling {
			t.Errorf("%s: %.0f allocations, at most %.0f", h.name, n, h.ceiling)
		}
	}
}

// BenchmarkExport is a freeze of 1,000 idle subscribers, written down and thawed, per subscriber.
func BenchmarkExport(b *testing.B) {
	e := openPub(b, PubConfig{})
	const n = 1000
	for range n {
		_, _ = dialRaw(b, e).Write(zmtp.AppendSubscribe(hello("SUB"), []byte("topic")))
	}
	patience.WaitFor(b, "subscribed", func() bool { return e.Stats().Subscribers == n })
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, e.Freeze(b.Context()))
		st, err := e.Export(b.Context())
		if err != nil || len(st.Descriptors) != n {
			b.Fatal(len(st.Descriptors), err)
		}
		e.Thaw()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/subscriber")
}

// BenchmarkMatch is a publication among 10,000 filtering subscribers, for one.
func BenchmarkMatch(b *testing.B) {
	x := newIndex()
	topics := make([]string, 10000)
	for i := range topics {
		t := make([]byte, 40)
		for k := range t {
			t[k] = "0123456789abcdef"[(i>>(k%14)+k)&15]
		}
		topics[i] = string(t)
		x.add(topics[i], &sub{})
		x.add(broadcast, &sub{})
	}
	b.ReportAllocs()
	n := 0
	for i := 0; b.Loop(); i++ {
		topic := topics[i%len(topics)]
		for l := range x.lengths {
			if l <= len(topic) {
				n += len(x.byTopic[topic[:l]])
			}
		}
	}
	if n == 0 {
		b.Fatal("nobody found")
	}
}

// BenchmarkRequest is one request and its reply over loopback, both ends.
func BenchmarkRequest(b *testing.B) {
	for name := range subscriptions {
		b.Run(name, func(b *testing.B) {
			ask := asker(b, openReq(b, ReqConfig{}, echo), name)
			b.ReportAllocs()
			for b.Loop() {
				ask()
			}
		})
	}
}

// asker returns what sends one request and reads its reply.
func asker(t testing.TB, e *ReqEdge, transport string) func() {
	t.Helper()
	c := dialRaw(t, e)
	msg := tcpFrame("3f2b8c1e-5b0a-4d63-9f0e-2f6f8f6d1c11", text(strings.Repeat("x", 600)))
	if transport == "zeromq" {
		_, _ = c.Write(hello("REQ"))
		if _, err := io.CopyN(io.Discard, c, int64(len(e.hello))); err != nil {
			t.Fatal(err)
		}
		msg = zmtp.AppendMessage(nil, nil, make([]byte, 600))
	}
	in := make([]byte, len(msg))
	return func() {
		_, _ = c.Write(msg)
		if _, err := io.ReadFull(c, in); err != nil {
			t.Fatal(err)
		}
	}
}
