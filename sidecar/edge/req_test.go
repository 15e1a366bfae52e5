package edge

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/zmtp"
)

func TestReqEcho(t *testing.T) {
	e := openReq(t, ReqConfig{Registerer: prometheus.NewRegistry()}, echo)
	for _, size := range []int{0, 1, 255, 256, 4000, 70000, 3 << 20} {
		c := dial(t, e, "REQ")
		ask(t, c, string(make([]byte, size)))
		ask(t, c, "again")
	}
}

func TestReqEnvelopeComesBack(t *testing.T) {
	e := openReq(t, ReqConfig{}, echo)
	c := dial(t, e, "DEALER")
	long := bytes.Repeat([]byte("x"), 300)
	sent := [][]byte{[]byte("device-1"), long, {}, []byte("body")}
	require.NoError(t, c.WriteMessage(sent...))
	got, err := c.ReadMessage()
	if err != nil || fmt.Sprint(got) != fmt.Sprint(sent) {
		t.Fatalf("%q, %v", got, err)
	}
}

// TestReqByteByByte cuts a request at every place.
func TestReqByteByByte(t *testing.T) {
	e := openReq(t, ReqConfig{}, echo)
	c := dialRaw(t, e)
	for _, b := range zmtp.AppendMessage(hello("REQ"), nil, []byte("hello there")) {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	want := zmtp.AppendMessage(e.hello, nil, []byte("hello there"))
	got := make([]byte, len(want))
	for n := 0; n < len(got); {
		k, err := c.Read(got[n:])
		require.NoError(t, err)
		n += k
	}
	if !bytes.Equal(got[len(e.hello):], want[len(e.hello):]) {
		t.Fatalf("%x", got)
	}
}

// TestReq_AnswersOutOfOrder has a DEALER with many requests out whose
// answers come from other goroutines.
func TestReq_AnswersOutOfOrder(t *testing.T) {
	e := openReq(t, ReqConfig{MaxInFlightPerConn: 8, MaxInFlight: 12}, func(r *Request) {
		go func() {
			for range rand.IntN(50) {
				runtime.Gosched()
			}
			r.Reply(append([]byte("re:"), r.Body...))
		}()
	})
	var wg sync.WaitGroup
	for range 4 {
		c := dial(t, e, "DEALER")
		const n = 300
		wg.Add(2)
		go func() {
			defer wg.Done()
			for i := range n {
				if err := c.WriteMessage([]byte(fmt.Sprint(i)), nil, []byte(fmt.Sprint(i))); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		go func() {
			defer wg.Done()
			seen := map[string]bool{}
			for range n {
				p, err := c.ReadMessage()
				if err != nil || len(p) != 3 || "re:"+string(p[0]) != string(p[2]) || seen[string(p[0])] {
					t.Errorf("%q, %v", p, err)
					return
				}
				seen[string(p[0])] = true
			}
		}()
	}
	wg.Wait()
	patience.WaitFor(t, "all places are free again", func() bool { s := e.Stats(); return s.InFlight == 0 && s.Memory == 0 })
}

// TestReqBackpressure wants a connection at its limit to be left unread, and
// others to go on.
func TestReqBackpressure(t *testing.T) {
	held := make(chan *Request, 100)
	e := openReq(t, ReqConfig{MaxInFlightPerConn: 2}, func(r *Request) {
		if string(r.Body) == "hold" {
			held <- r
			return
		}
		echo(r)
	})
	c := dial(t, e, "DEALER")
	for range 10 {
		require.NoError(t, c.WriteMessage(nil, []byte("hold")))
	}
	for served := range 10 {
		r := <-held
		ask(t, dial(t, e, "REQ"), "somebody else")
		if n := e.Stats().InFlight; n > 3 { // its two and the one just answered
			t.Fatalf("%d in flight", n)
		}
		if served%2 == 0 {
			r.Drop()
		} else {
			r.Reply([]byte("x"))
			r.Reply([]byte("only the first counts"))
		}
	}
	for range 5 {
		if _, err := c.ReadMessage(); err != nil {
			t.Fatal(err)
		}
	}
	patience.WaitFor(t, "nothing in flight", func() bool { return e.Stats().InFlight == 0 })
}

func TestReqGone(t *testing.T) {
	held := make(chan *Request, 1)
	e := openReq(t, ReqConfig{}, func(r *Request) { held <- r })
	c := dial(t, e, "REQ")
	require.NoError(t, c.WriteMessage(nil, []byte("x")))
	r := <-held
	if r.Gone() {
		t.Fatal("gone too early")
	}
	c.Close()
	patience.WaitFor(t, "the disconnect is known", r.Gone)
	r.Reply([]byte("to nobody"))
	patience.WaitFor(t, "the connection is forgotten", func() bool { s := e.Stats(); return s.Conns == 0 && s.InFlight == 0 })
}

// TestReq_CloseWithLastBytes has the end arrive together with the request,
// which follow cannot see.
func TestReq_CloseWithLastBytes(t *testing.T) {
	e := openReq(t, ReqConfig{}, func(r *Request) { r.Drop() })
	for range 50 {
		c := dialRaw(t, e)
		if _, err := c.Write(zmtp.AppendMessage(hello("REQ"), nil, []byte("bye"))); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	patience.WaitFor(t, "all ends are seen", func() bool { return e.Stats().Conns == 0 })
}

func TestReqPing(t *testing.T) {
	e := openReq(t, ReqConfig{}, echo)
	c := dialRaw(t, e)
	msg := zmtp.AppendPing(hello("REQ"), time.Second, []byte("ctx"))
	if _, err := c.Write(msg); err != nil {
		t.Fatal(err)
	}
	want := zmtp.AppendPong(nil, []byte("ctx"))
	got := make([]byte, len(e.hello)+len(want))
	for n := 0; n < len(got); {
		k, err := c.Read(got[n:])
		require.NoError(t, err)
		n += k
	}
	if !bytes.HasSuffix(got, want) {
		t.Fatalf("%x", got)
	}
}

// TestReqCloseWaitsForAnswers wants outstanding answers to arrive before the
// connection ends, also those the client reads late.
func TestReqCloseWaitsForAnswers(t *testing.T) {
	held := make(chan *Request, 1)
	e := openReq(t, ReqConfig{DrainTimeout: testTimeout}, func(r *Request) { held <- r })
	c := dial(t, e, "REQ")
	require.NoError(t, c.WriteMessage(nil, []byte("x")))
	r := <-held
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	big := make([]byte, 20<<20)
	r.Reply(big)
	parts, err := c.ReadMessage()
	if err != nil || len(parts[1]) != len(big) {
		t.Fatal(err)
	}
	require.NoError(t, <-closed)
	if _, err := c.ReadMessage(); err == nil {
		t.Fatal("still open")
	}
}

func TestReqCloseIsBounded(t *testing.T) {
	held := make(chan *Request, 1)
	e := openReq(t, ReqConfig{DrainTimeout: 20 * time.Millisecond}, func(r *Request) { held <- r })
	c := dial(t, e, "REQ")
	require.NoError(t, c.WriteMessage(nil, []byte("never answered")))
	r := <-held
	require.NoError(t, e.Close())
	r.Reply([]byte("too late"))
	require.NoError(t, e.Close()) // a second time
}

func TestReqConnectionLimits(t *testing.T) {
	e := openReq(t, ReqConfig{MaxConns: 2}, echo)
	a, b := dial(t, e, "REQ"), dial(t, e, "REQ")
	refused(t, e)
	ask(t, a, "1")
	b.Close()
	patience.WaitFor(t, "the place is free", func() bool { return e.Stats().Conns == 1 })
	ask(t, dial(t, e, "REQ"), "2")

	e = openReq(t, ReqConfig{MaxConnsPerAddr: 1}, echo)
	ask(t, dial(t, e, "REQ"), "3")
	refused(t, e)
}

func TestReqConfigErrors(t *testing.T) {
	if _, err := NewReqEdge(ReqConfig{Addrs: []string{"x"}}); err == nil {
		t.Error("no handler")
	}
	if _, err := NewReqEdge(ReqConfig{Handler: handlerFunc(echo)}); err == nil {
		t.Error("no address")
	}
	e, err := NewReqEdge(ReqConfig{Addrs: []string{"256.0.0.1:1"}, Handler: handlerFunc(echo)})
	require.NoError(t, err)
	if err := e.Open(t.Context()); err == nil {
		t.Error("listening on nothing")
	}
	check.NoError(t, e.Close())
}

// TestReqGivesLentAnswersBack: the memory of an answer comes back once, and only after its last byte was taken.
func TestReqGivesLentAnswersBack(t *testing.T) {
	const size, asked = 8 << 20, 3 // more than the sockets hold
	back := make(chan []byte, asked+1)
	e := openReq(t, ReqConfig{MaxOutput: asked * size}, func(r *Request) {
		r.ReplyLent(bytes.Repeat(r.Body, size), func(b []byte) {
			first := b[0]
			clear(b) // whoever has it next writes to it
			back <- []byte{first}
		})
	})
	c := dial(t, e, "DEALER")
	for _, body := range []string{"a", "b", "c"} {
		require.NoError(t, c.WriteMessage(nil, []byte(body)))
	}
	patience.WaitFor(t, "three answers that wait for who has asked", func() bool { return e.unread.Used() > (asked-1)*size })
	if len(back) > 0 {
		t.Fatal("given back although nobody has read it")
	}
	var read []string
	for range asked {
		got, err := c.ReadMessage()
		require.NoError(t, err)
		body := got[len(got)-1]
		if !bytes.Equal(body, bytes.Repeat(body[:1], size)) {
			t.Fatal("an answer was changed under way")
		}
		read = append(read, string(body[:1]))
	}
	for i := range asked {
		select {
		case b := <-back:
			if string(b) != read[i] {
				t.Fatalf("%s came back, read was %s", b, read[i])
			}
		case <-time.After(testTimeout):
			t.Fatal("not given back")
		}
	}
	if len(back) > 0 {
		t.Fatal("given back twice")
	}
}

// TestReqReplyLent_PeerGone: what a peer that goes away has not read may still be in the kernel's hands, so a lent
// answer is not given back.
func TestReqReplyLent_PeerGone(t *testing.T) {
	var back atomic.Int64
	e := openReq(t, ReqConfig{}, func(r *Request) {
		r.ReplyLent(make([]byte, 8<<20), func([]byte) { back.Add(1) })
	})
	c := dial(t, e, "REQ")
	require.NoError(t, c.WriteMessage(nil, []byte("x")))
	patience.WaitFor(t, "an answer that waits", func() bool { return e.unread.Used() > 0 })
	require.NoError(t, c.Close())
	patience.WaitFor(t, "the answer is forgotten", func() bool { return e.unread.Used() == 0 })
	if n := back.Load(); n != 0 {
		t.Fatalf("given back %d times", n)
	}
}
