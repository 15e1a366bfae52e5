package edge

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/zmtp"

	"github.com/gobwas/ws"
)

// inherited gives an edge the listeners of another one, as a new process gets
// them.
func inherited(t *testing.T, lns []net.Listener) func(context.Context, string, string) (net.Listener, error) {
	return func(context.Context, string, string) (net.Listener, error) {
		f, err := lns[0].(*net.TCPListener).File()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		lns = lns[1:]
		return net.FileListener(f)
	}
}

// carry duplicates descriptors, as sending them to another process does.
func carry(t *testing.T, st State) State {
	t.Helper()
	out := State{Record: append([]byte(nil), st.Record...)}
	for _, fd := range st.Descriptors {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		require.NoError(t, err)
		out.Descriptors = append(out.Descriptors, n)
	}
	return out
}

// upgradePub hands all of old over to a new edge, whose options may have changed.
func upgradePub(t *testing.T, old *PubEdge, change ...func(*Served)) *PubEdge {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	require.NoError(t, old.Freeze(ctx))
	st, err := old.Export(ctx)
	require.NoError(t, err)
	cfg := old.cfg
	cfg.Listen = inherited(t, old.listener.Listeners())
	for _, f := range change {
		f(&cfg.Served)
	}
	next, err := NewPubEdge(cfg)
	require.NoError(t, err)
	require.NoError(t, next.Import(carry(t, st)))
	old.Hand()
	require.NoError(t, next.Open(t.Context()))
	t.Cleanup(func() { check.NoError(t, next.Close()) })
	require.NoError(t, old.Close())
	return next
}

func upgradeReq(t *testing.T, old *ReqEdge, h func(*Request), while func(next *ReqEdge), change ...func(*Served)) *ReqEdge {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	require.NoError(t, old.Freeze(ctx))
	st, err := old.Export(ctx)
	require.NoError(t, err)
	cfg := old.cfg
	cfg.Listen, cfg.Handler = inherited(t, old.listener.Listeners()), handlerFunc(h)
	for _, f := range change {
		f(&cfg.Served)
	}
	next, err := NewReqEdge(cfg)
	require.NoError(t, err)
	require.NoError(t, next.Import(carry(t, st)))
	while(next)
	require.NoError(t, next.Open(t.Context()))
	old.Hand(func(a Answer) {
		b, err := ParseAnswer(a.Append())
		check.NoError(t, err)
		next.Finish(b)
	})
	t.Cleanup(func() { check.NoError(t, next.Close()) })
	require.NoError(t, old.Close())
	return next
}

func subscribeTo(t *testing.T, e addressed, topic string) *zmtp.Client {
	t.Helper()
	c := dial(t, e, "SUB")
	require.NoError(t, c.Subscribe([]byte(topic)))
	return c
}

func expect(t *testing.T, c *zmtp.Client, want ...string) {
	t.Helper()
	for _, w := range want {
		parts, err := c.ReadMessage()
		require.NoError(t, err, "waiting for", w)
		if got := string(parts[len(parts)-1]); got != w {
			t.Fatalf("got %.40q, want %.40q", got, w)
		}
	}
}

func TestSubscribersSurviveUpgrades(t *testing.T) {
	e := openPub(t, PubConfig{})
	all, filtering := subscribeTo(t, e, ""), subscribeTo(t, e, "broadcast")
	halfway := dialRaw(t, e) // a greeting cut in two
	greeting := hello("SUB")
	if _, err := halfway.Write(greeting[:40]); err != nil {
		t.Fatal(err)
	}
	subscribeTo(t, e, "x")
	patience.WaitFor(t, "three subscribers", func() bool { st := e.Stats(); return st.Subscribers == 3 && st.Conns == 4 })
	n := 0
	for range 3 {
		e.Publish(Publication{Body: []byte(fmt.Sprint("before ", n))})
		e = upgradePub(t, e)
		e.Publish(Publication{Body: []byte(fmt.Sprint("after ", n))})
		for _, c := range []*zmtp.Client{all, filtering} {
			expect(t, c, fmt.Sprint("before ", n), fmt.Sprint("after ", n))
		}
		n++
	}
	if _, err := halfway.Write(greeting[40:]); err != nil {
		t.Fatal(err)
	}
	if _, err := halfway.Write(zmtp.AppendSubscribe(nil, nil)); err != nil {
		t.Fatal(err)
	}
	patience.WaitFor(t, "the slow greeter to subscribe", func() bool { return e.Stats().Subscribers == 4 })
	if c := subscribeTo(t, e, ""); true { // the listener went along
		patience.WaitFor(t, "a new subscriber", func() bool { return e.Stats().Subscribers == 5 })
		e.Publish(Publication{Body: []byte("new")})
		expect(t, c, "new")
	}
}

// slowReader is a subscriber with tiny buffers that reads nothing by itself.
func slowReader(t *testing.T, e addressed) (net.Conn, *zmtp.Client) {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096) })
	}}
	raw, err := d.Dial("tcp", e.Addr()[0].String())
	require.NoError(t, err)
	t.Cleanup(func() { raw.Close() })
	_ = raw.SetDeadline(time.Now().Add(testTimeout))
	c, err := zmtp.NewClient(t.Context(), raw, zmtp.ClientOptions{SocketType: "SUB"})
	require.NoError(t, err)
	require.NoError(t, c.Subscribe(nil))
	return raw, c
}

// patientPub does not cut subscribers that read nothing until much was published, however slow the machine is.
func patientPub() PubConfig { return PubConfig{Heartbeat: time.Hour, HeartbeatTimeout: time.Hour} }

// The queue of a slow subscriber is handed over, too.
func TestPubTakeover_SlowSubscriberQueue(t *testing.T) {
	e := openPub(t, patientPub())
	_, slow := slowReader(t, e)
	patience.WaitFor(t, "a subscriber", func() bool { return e.Stats().Subscribers == 1 })
	body := func(i int) string { return fmt.Sprintf("%06d%s", i, make([]byte, 100<<10)) }
	const each = 60
	n := 0
	for range 3 {
		for range each {
			e.Publish(Publication{Body: []byte(body(n))})
			n++
		}
		patience.WaitFor(t, "it to be blocked", func() bool { return e.Stats().Blocked == 1 })
		e = upgradePub(t, e)
	}
	for i := range n {
		expect(t, slow, body(i))
	}
}

func TestPubThaw_DeliversAll(t *testing.T) {
	e := openPub(t, patientPub())
	c := subscribeTo(t, e, "")
	_, slow := slowReader(t, e)
	patience.WaitFor(t, "two subscribers", func() bool { return e.Stats().Subscribers == 2 })
	n := 0
	publish := func() {
		e.Publish(Publication{Body: []byte(fmt.Sprintf("%06d%s", n, make([]byte, 100<<10)))})
		n++
	}
	for range 3 {
		for range 60 {
			publish()
		}
		require.NoError(t, e.Freeze(t.Context()))
		if _, err := e.Export(t.Context()); err != nil {
			t.Fatal(err)
		}
		waited := make(chan struct{})
		go func() { publish(); close(waited) }()
		e.Thaw()
		<-waited
	}
	for _, s := range []*zmtp.Client{c, slow} {
		for i := range n {
			expect(t, s, fmt.Sprintf("%06d%s", i, make([]byte, 100<<10)))
		}
	}
	if _, err := e.Export(t.Context()); err == nil {
		t.Error("an edge that is not frozen was written down")
	}
}

func TestReqTakeover_InFlight(t *testing.T) {
	var mu sync.Mutex
	var kept []*Request
	keep := func(r *Request) { mu.Lock(); kept = append(kept, r); mu.Unlock() }
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(kept) }
	e := openReq(t, ReqConfig{MaxInFlightPerConn: 1}, keep)
	early, late, waiting := dial(t, e, "REQ"), dial(t, e, "REQ"), dial(t, e, "DEALER")
	for i, c := range []*zmtp.Client{early, late, waiting} {
		require.NoError(t, c.WriteMessage(nil, []byte(fmt.Sprint("q", i))))
		patience.WaitFor(t, "the request", func() bool { return count() == i+1 })
	}
	require.NoError(t, waiting.WriteMessage(nil, []byte("q3"))) // finds no place
	torn := dialRaw(t, e)
	tornClient, err := zmtp.NewClient(t.Context(), torn, zmtp.ClientOptions{SocketType: "REQ"})
	require.NoError(t, err)
	message := zmtp.AppendMessage(nil, nil, []byte("cut in two"))
	if _, err := torn.Write(message[:len(message)-3]); err != nil {
		t.Fatal(err)
	}
	patience.WaitFor(t, "the torn request to have begun", func() bool { return e.Stats().Memory > 0 })
	e2 := upgradeReq(t, e, echo, func(next *ReqEdge) {
		kept[0].Reply([]byte("a0")) // between writing down and taking over
		if next.Stats().InFlight != 3 {
			t.Errorf("%d in flight", next.Stats().InFlight)
		}
	})
	kept[1].Reply([]byte("a1"))
	kept[2].Drop()
	e2.Finish(Answer{Conn: 99, Request: 1}) // nobody's
	expect(t, early, "a0")
	expect(t, late, "a1")
	expect(t, waiting, "q3") // served by the new one, when the place was free
	if _, err := torn.Write(message[len(message)-3:]); err != nil {
		t.Fatal(err)
	}
	expect(t, tornClient, "cut in two")
	ask(t, early, "again")
	ask(t, dial(t, e2, "REQ"), "a newcomer")
	patience.WaitFor(t, "no request in flight", func() bool { st := e2.Stats(); return st.InFlight == 0 && st.Memory == 0 })
	check.Equal(t, e.Unanswered(), 0, "unanswered")
}

func TestUnservedAndOrphanedRequests(t *testing.T) {
	var kept atomic.Pointer[Request]
	e := openReq(t, ReqConfig{}, func(r *Request) {
		if string(r.Body) == "sign in" {
			kept.Store(r)
		}
	})
	c, lost := dial(t, e, "REQ"), dial(t, e, "REQ")
	for i, client := range []*zmtp.Client{c, lost} {
		require.NoError(t, client.WriteMessage(nil, []byte([]string{"sign in", "never"}[i])))
	}
	patience.WaitFor(t, "two requests", func() bool { return e.Stats().InFlight == 2 && kept.Load() != nil })
	ctx := t.Context()
	require.NoError(t, e.Freeze(ctx))
	st, err := e.Export(ctx)
	require.NoError(t, err)
	cfg := e.cfg
	cfg.Listen, cfg.Handler = inherited(t, e.listener.Listeners()), handlerFunc(echo)
	next, err := NewReqEdge(cfg)
	require.NoError(t, err)
	require.NoError(t, next.Import(carry(t, st)))
	require.NoError(t, next.Open(ctx))
	e.Hand(func(a Answer) {
		if a.Kind != Dropped || string(a.Body) != "sign in" {
			t.Errorf("%v %q", a.Kind, a.Body)
		}
		a.Kind = Unserved
		next.Finish(a)
	})
	kept.Load().Drop()
	expect(t, c, "sign in")
	check.Equal(t, next.Orphan(), 1, "orphans")
	patience.WaitFor(t, "no request in flight", func() bool { return next.Stats().InFlight == 0 })
	for _, end := range []*ReqEdge{e, next} {
		check.NoError(t, end.Close())
	}
}

func TestReqThaw_AnswersDuringFreeze(t *testing.T) {
	var kept atomic.Pointer[Request]
	e := openReq(t, ReqConfig{}, func(r *Request) { kept.Store(r) })
	c := dial(t, e, "REQ")
	for i := range 5 {
		kept.Store(nil)
		require.NoError(t, c.WriteMessage(nil, []byte("q")))
		patience.WaitFor(t, "the request", func() bool { return kept.Load() != nil })
		require.NoError(t, e.Freeze(t.Context()))
		if _, err := e.Export(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept.Load().Reply([]byte(fmt.Sprint("a", i)))
		e.Thaw()
		expect(t, c, fmt.Sprint("a", i))
	}
	patience.WaitFor(t, "no request in flight", func() bool { return e.Stats().InFlight == 0 })
}

// TestLentAnswers_DuringFreeze: what waits for its reader while the edge stands still is not given back before it was
// read, and what is lent meanwhile never.
func TestLentAnswers_DuringFreeze(t *testing.T) {
	const size = 8 << 20 // more than the sockets hold
	for _, moves := range []bool{false, true} {
		t.Run(fmt.Sprintf("moves %v", moves), func(t *testing.T) {
			var waiting, frozen atomic.Pointer[Request]
			var back atomic.Int64
			lend := func(r *Request) {
				r.ReplyLent(bytes.Repeat(r.Body, size), func(b []byte) {
					clear(b) // whoever has it next writes to it
					back.Add(1)
				})
			}
			e := openReq(t, ReqConfig{MaxOutput: 4 * size}, func(r *Request) {
				if string(r.Body) == "f" {
					frozen.Store(r)
					return
				}
				waiting.Store(r)
				lend(r)
			})
			c := dial(t, e, "DEALER")
			for _, body := range []string{"f", "w"} {
				require.NoError(t, c.WriteMessage(nil, []byte(body)))
			}
			patience.WaitFor(t, "an answer that waits for who has asked",
				func() bool { return waiting.Load() != nil && e.unread.Used() > 0 })
			later := func(*ReqEdge) { lend(frozen.Load()) }
			if moves {
				upgradeReq(t, e, echo, later)
			} else {
				require.NoError(t, e.Freeze(t.Context()))
				if _, err := e.Export(t.Context()); err != nil {
					t.Fatal(err)
				}
				later(e)
				e.Thaw()
			}
			for _, body := range []string{"w", "f"} {
				got, err := c.ReadMessage()
				require.NoError(t, err)
				if b := got[len(got)-1]; !bytes.Equal(b, bytes.Repeat([]byte(body), size)) {
					t.Fatalf("answer %s was changed under way", body)
				}
			}
			if !moves {
				patience.WaitFor(t, "the memory of the first answer", func() bool { return back.Load() > 0 })
			}
			if n := back.Load(); n > 1 || moves && n > 0 {
				t.Errorf("given back %d times", n)
			}
		})
	}
}

func TestReqFreeze_Timeout(t *testing.T) {
	block := make(chan struct{})
	e := openReq(t, ReqConfig{}, func(r *Request) { <-block; echo(r) }) // a handler must not do that
	c := dial(t, e, "REQ")
	require.NoError(t, c.WriteMessage(nil, []byte("q")))
	patience.WaitFor(t, "the request", func() bool { return e.Stats().InFlight == 1 })
	other := dial(t, e, "REQ")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := e.Freeze(ctx); err == nil {
		t.Fatal("frozen")
	}
	close(block)
	expect(t, c, "q")
	ask(t, other, "still here")
	ask(t, dial(t, e, "REQ"), "a newcomer")
}

func FuzzImport(f *testing.F) {
	pub, req := beginRecord(pubSide, 1), beginRecord(reqSide, 1)
	f.Add(pub.Record(), true)
	f.Add(req.Record(), false)
	for _, side := range []bool{true, false} {
		f.Add(seed(f, side), side)
	}
	f.Fuzz(func(t *testing.T, record []byte, side bool) {
		d := handover.NewDecoder(record)
		d.Uint()
		st := State{Record: record, Descriptors: make([]int, min(d.Count(), 64))}
		if side {
			e, err := NewPubEdge(PubConfig{Addrs: []string{"127.0.0.1:0"}, Shards: 1})
			require.NoError(t, err)
			_ = e.Import(st)
			return
		}
		e, err := NewReqEdge(ReqConfig{Addrs: []string{"127.0.0.1:0"}, Handler: handlerFunc(echo)})
		require.NoError(t, err)
		_ = e.Import(st)
	})
}

// seed is a record of real connections.
func seed(f *testing.F, side bool) []byte {
	f.Helper()
	if side {
		e := openPub(f, PubConfig{})
		c := dialRaw(f, e)
		_, _ = c.Write(append(hello("SUB"), zmtp.AppendSubscribe(nil, []byte("broadcast"))...))
		half := dialRaw(f, e)
		_, _ = half.Write(hello("SUB")[:30])
		_, _ = dialRaw(f, e).Write(append(tcpFrame("", text("m1")), 0x82))
		dialWS(f, e).write(wsFrame(ws.OpPong, true, []byte("x"))[:3])
		patience.WaitFor(f, "subscribers", func() bool { return e.Stats().Subscribers == 3 && e.Stats().Conns == 4 })
		require.NoError(f, e.Freeze(f.Context()))
		st, err := e.Export(f.Context())
		require.NoError(f, err)
		e.Thaw()
		return st.Record
	}
	e := openReq(f, ReqConfig{}, func(*Request) {})
	c := dialRaw(f, e)
	b := append(hello("REQ"), zmtp.AppendMessage(nil, nil, []byte("in flight"))...)
	_, _ = c.Write(append(b, zmtp.AppendMessage(nil, nil, []byte("half of it"))[:7]...))
	_, _ = dialRaw(f, e).Write(append(tcpFrame("1", text("in flight")), tcpFrame("2", text("half of it"))[:9]...))
	third := dialWS(f, e)
	third.send("in flight")
	third.write(append(wsFrame(ws.OpBinary, false, []byte("half")), wsFrame(ws.OpContinuation, true, []byte("of it"))[:7]...))
	patience.WaitFor(f, "three requests", func() bool { return e.Stats().InFlight == 3 })
	require.NoError(f, e.Freeze(f.Context()))
	st, err := e.Export(f.Context())
	require.NoError(f, err)
	e.Thaw()
	return st.Record
}
