package edge

import (
	"context"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/zmtp"
)

func TestPubDrainAndResume(t *testing.T) {
	e := openPub(t, PubConfig{})
	for range 3 {
		c := subscribe(t, e, "")
		e.Drain(t.Context(), 0)
		if _, err := c.ReadMessage(); err == nil {
			t.Fatal("still open")
		}
		refused(t, e)
		require.NoError(t, e.Resume(t.Context()))
		require.NoError(t, e.Resume(t.Context())) // nothing to do
	}
	c := subscribe(t, e, "")
	e.Publish(pub("after"))
	next(t, c, "after")
	require.NoError(t, e.Close())
	if err := e.Resume(t.Context()); err == nil {
		t.Fatal("a closed edge listens again")
	}
}

// TestPubDrain_SignIn: a subscriber that has just got a reason to sign in is closed when it has had the time for it, and
// no other one gets such a reason during a drain.
func TestPubDrain_SignIn(t *testing.T) {
	for name, hold := range map[string]bool{"window": false, "hold": true} {
		t.Run(name, func(t *testing.T) {
			e := openPub(t, PubConfig{Shards: 1})
			told, other := subscribe(t, e, ""), subscribe(t, e, "") // in this order
			e.Rotate(Rotation{Window: time.Hour, Nudge: []byte("nudge"), Hold: hold})
			patience.WaitFor(t, "one has moved", func() bool { return e.Stats().OnPrevious == 1 })
			e.cfg.SignInTime = time.Hour // now that the rotation has begun
			next(t, told, "nudge")
			e.Publish(Publication{Body: []byte("new"), Prev: []byte("old")})
			next(t, told, "new")
			left := 1
			if hold { // the drain lets the other one read what was held, so that it may sign in as well
				left = 2
			} else {
				next(t, other, "old")
			}
			ctx, cancel := context.WithCancel(t.Context())
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				e.Drain(ctx, 0)
			}()
			if hold {
				next(t, other, "old")
			}
			patience.WaitFor(t, "the rest is closed", func() bool { return e.conns.Draining() && e.Stats().Conns == left })
			cancel()
			<-drained
			check.Equal(t, e.Stats().OnPrevious, 1)
			for _, s := range e.conns.All() {
				check.Equal(t, s.letGo(netconn.Clock()+int64(time.Hour)), true)
			}
			for _, c := range []*zmtp.Client{told, other} {
				if p, err := c.ReadMessage(); err == nil {
					t.Errorf("got %q", p)
				}
			}
		})
	}
}

// TestPubDrain_Rotation: a rotation that holds what is published goes on during a drain.
func TestPubDrain_Rotation(t *testing.T) {
	e := openPub(t, PubConfig{Shards: 1})
	for range 3 {
		subscribe(t, e, "")
	}
	ctx, cancel := context.WithCancel(t.Context())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		e.Drain(ctx, time.Hour)
	}()
	patience.WaitFor(t, "the first is closed", func() bool { return e.Stats().Conns == 2 })
	e.Rotate(Rotation{Window: 50 * time.Millisecond, Nudge: []byte("nudge"), Hold: true})
	patience.WaitFor(t, "the rest has moved", func() bool { return e.Stats().OnPrevious == 0 })
	cancel()
	<-drained
}

// TestPubDrain_EndsRotation: when all are closed there is none left to be moved. Who got nothing that it could not read is
// closed at its turn.
func TestPubDrain_EndsRotation(t *testing.T) {
	for name, hold := range map[string]bool{"window": false, "hold": true} {
		t.Run(name, func(t *testing.T) {
			e := openPub(t, PubConfig{Shards: 1})
			subscribe(t, e, "")
			subscribe(t, e, "")
			e.Rotate(Rotation{Window: time.Hour, Hold: hold})
			patience.WaitFor(t, "one has moved", func() bool { return e.Stats().OnPrevious == 1 })
			e.cfg.SignInTime = time.Hour
			ctx, cancel := context.WithCancel(t.Context())
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				e.Drain(ctx, 0)
			}()
			patience.WaitFor(t, "the other is closed", func() bool { return e.Stats().Conns == 1 })
			cancel()
			<-drained
			e.cfg.SignInTime = time.Nanosecond
			e.Drain(t.Context(), 0)
			check.Equal(t, e.rotates(), false, "a rotation without subscribers goes on")
			check.Equal(t, e.Stats().OnPrevious, 0)
		})
	}
}

// TestReqDrain_Busy wants each connection to end between two requests, and never before its answers.
func TestReqDrain_Busy(t *testing.T) {
	held := make(chan *Request, 1)
	e := openReq(t, ReqConfig{}, func(r *Request) {
		if string(r.Body) == "slow" {
			held <- r
			return
		}
		echo(r)
	})
	idle, busy := dial(t, e, "REQ"), dial(t, e, "REQ")
	ask(t, idle, "x")
	require.NoError(t, busy.WriteMessage(nil, []byte("slow")))
	r := <-held
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		e.Drain(context.Background(), 10*time.Millisecond)
	}()
	if _, err := idle.ReadMessage(); err == nil {
		t.Fatal("the idle one is still open")
	}
	refused(t, e)
	select {
	case <-drained:
		t.Fatal("did not wait for the answer")
	default:
	}
	r.Reply([]byte("done"))
	for _, c := range e.conns.All() { // it had to wait for its answer, and may ask again at once
		if c.Reason() == netconn.ReasonNone && c.letGo(c.answered.Load()+int64(quietFor)-1) {
			t.Fatal("it is cut right after its answer")
		}
	}
	if parts, err := busy.ReadMessage(); err != nil || string(parts[1]) != "done" {
		t.Fatalf("%q, %v", parts, err)
	}
	ask(t, busy, "one more") // it goes on asking and is served
	if _, err := busy.ReadMessage(); err == nil {
		t.Fatal("the busy one is still open")
	}
	<-drained
	require.NoError(t, e.Resume(t.Context()))
	ask(t, dial(t, e, "REQ"), "again")
}

func TestReqDrain_Timeout(t *testing.T) {
	held := make(chan *Request, 1)
	e := openReq(t, ReqConfig{}, func(r *Request) { held <- r })
	c := dial(t, e, "REQ")
	require.NoError(t, c.WriteMessage(nil, []byte("slow")))
	r := <-held
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	e.Drain(ctx, 0)
	if e.Stats().Conns != 1 {
		t.Fatal("a request without an answer was cut off")
	}
	r.Reply(nil)
}

// TestDrainWhileClosing wants no listener left behind by a Resume that meets a Close.
func TestDrainWhileClosing(t *testing.T) {
	for range 20 {
		e := openReq(t, ReqConfig{DrainTimeout: time.Millisecond}, echo)
		p := openPub(t, PubConfig{})
		e.Drain(t.Context(), 0)
		p.Drain(t.Context(), 0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = e.Resume(context.Background())
			_ = p.Resume(context.Background())
		}()
		require.NoError(t, e.Close())
		require.NoError(t, p.Close())
		<-done
		if c, err := zmtpDial(e); err == nil {
			t.Fatalf("still listening: %v", c.Peer())
		}
	}
}

// zmtpDial tries to shake hands.
func zmtpDial(e addressed) (*zmtp.Client, error) {
	conn, err := dialAddr(e)
	if err != nil {
		return nil, err
	}
	return zmtp.NewClient(context.Background(), conn, zmtp.ClientOptions{SocketType: "REQ", HandshakeTimeout: time.Second})
}
