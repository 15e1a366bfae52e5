package edge

import (
	"io"
	"sync/atomic"
	"testing"

	"saltclusterd/sidecar/zmtp"
)

// BenchmarkPublish is the cost of a publication with nobody listening:
// encoding it and waking the workers.
func BenchmarkPublish(b *testing.B) {
	e := benchPub(b)
	p := Publication{Body: make([]byte, 1<<10)}
	b.ReportAllocs()
	for b.Loop() {
		e.Publish(p)
	}
}

// BenchmarkDeliver is a publication to 100 subscribers, per delivery.
func BenchmarkDeliver(b *testing.B) {
	e := benchPub(b)
	const n = 100
	var got atomic.Int64
	for range n {
		c := dialRaw(b, e)
		_, _ = c.Write(zmtp.AppendSubscribe(hello("SUB"), nil))
		go func() {
			buf := make([]byte, 64<<10)
			for {
				k, err := c.Read(buf)
				if err != nil {
					return
				}
				got.Add(int64(k))
			}
		}()
	}
	eventually(b, "subscribed", func() bool { return e.Stats().Subscribers == n })
	p := Publication{Body: make([]byte, 1<<10)}
	b.ReportAllocs()
	for b.Loop() {
		e.Publish(p)
	}
	eventually(b, "delivered", func() bool { s := e.Stats(); return s.Delivered == s.Published*n })
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/delivery")
}

// BenchmarkExport is a frost of 1,000 idle subscribers, written down and thawed, per subscriber.
func BenchmarkExport(b *testing.B) {
	e := benchPub(b)
	const n = 1000
	for range n {
		_, _ = dialRaw(b, e).Write(zmtp.AppendSubscribe(hello("SUB"), []byte("topic")))
	}
	eventually(b, "subscribed", func() bool { return e.Stats().Subscribers == n })
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Freeze(b.Context()); err != nil {
			b.Fatal(err)
		}
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
	e := openReq(b, ReqConfig{}, echo)
	c := dialRaw(b, e)
	_, _ = c.Write(hello("REQ"))
	if _, err := io.CopyN(io.Discard, c, int64(len(e.hello))); err != nil {
		b.Fatal(err)
	}
	msg := zmtp.AppendMessage(nil, nil, make([]byte, 600))
	in := make([]byte, len(msg))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Write(msg)
		if _, err := io.ReadFull(c, in); err != nil {
			b.Fatal(err)
		}
	}
}

func benchPub(b *testing.B) *PubEdge {
	b.Helper()
	return openPub(b, PubConfig{})
}
