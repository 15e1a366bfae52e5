package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// still is a relay in front of a master that can stop passing on what the master says, as if that had been stopped.
type still struct {
	ln net.Listener
	wg sync.WaitGroup

	mu    sync.Mutex
	cond  sync.Cond
	stop  bool
	conns []net.Conn
}

func startStill(t *testing.T, master string) *still {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &still{ln: ln}
	s.cond.L = &s.mu
	s.wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", master)
			if err != nil {
				_ = in.Close()
				continue
			}
			s.mu.Lock()
			s.conns = append(s.conns, in, out)
			s.mu.Unlock()
			s.wg.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
			s.wg.Go(func() { s.pass(in, out); _ = in.Close() })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		s.set(false)
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

func (s *still) pass(to, from net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		s.mu.Lock()
		for s.stop {
			s.cond.Wait()
		}
		s.mu.Unlock()
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func (s *still) set(stop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = stop
	s.cond.Broadcast()
}

var probeBody = []byte("probe")

// workers is a master that answers probes and requests only while they work.
type workers struct {
	mu     sync.Mutex
	asleep bool
	late   []func()
}

func (w *workers) handle(c *fakeConn, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asleep {
		w.late = append(w.late, func() { c.reply(body) })
		return
	}
	go c.reply(body)
}

func (w *workers) sleep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asleep = true
}

func (w *workers) wake() {
	w.mu.Lock()
	late := w.late
	w.asleep, w.late = false, nil
	w.mu.Unlock()
	for _, f := range late {
		f()
	}
}

func openStalling(t *testing.T, cfg ReqConfig) *ReqClient {
	t.Helper()
	c := NewReqClient(cfg)
	require.NoError(t, c.Open(t.Context()))
	t.Cleanup(func() { _ = c.Close() })
	patience.WaitFor(t, "up", c.Up)
	return c
}

// TestStuckWorkers: connections are fine, nothing is answered; then everything is.
func TestStuckWorkers(t *testing.T) {
	w := &workers{}
	f := startFake(t, "127.0.0.1:0", w.handle)
	rises := make(chan struct{}, 100)
	c := openStalling(t, ReqConfig{
		Addr: f.addr(), Probe: probeBody, ProbeAfter: 5 * time.Millisecond, StuckAfter: 300 * time.Millisecond,
		OnUp: func() { rises <- struct{}{} },
	})
	<-rises
	w.sleep()
	_, err := c.Do(t.Context(), []byte("in flight"))
	if !errors.Is(err, ErrLost) || Retryable(err) {
		t.Errorf("a call under way: %v", err)
	}
	if c.Up() || c.Stats().Stalled != Stuck {
		t.Errorf("%+v", c.Stats())
	}
	if _, err := c.Do(t.Context(), []byte("new")); !errors.Is(err, ErrDown) || !Retryable(err) {
		t.Errorf("a new call: %v", err)
	}
	patience.WaitFor(t, "probes", func() bool { // and not without end
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.probes) == maxProbes
	})
	w.wake()
	patience.WaitFor(t, "up again", c.Up)
	<-rises
	for _, body := range []string{"a", "b"} {
		if got, err := c.Do(t.Context(), []byte(body)); err != nil || string(got) != body {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestIdleMasterIsProbed finds a master stuck that nobody asks anything.
func TestIdleMasterIsProbed(t *testing.T) {
	w := &workers{}
	f := startFake(t, "127.0.0.1:0", w.handle)
	c := openStalling(t, ReqConfig{
		Addr: f.addr(), Probe: probeBody, ProbeAfter: 5 * time.Millisecond, StuckAfter: 300 * time.Millisecond,
	})
	w.sleep()
	patience.WaitFor(t, "stuck", func() bool { return c.Stats().Stalled == Stuck })
	w.wake()
	patience.WaitFor(t, "up again", c.Up)
}

// TestStall_OneBusyWorker: of three workers, to which requests are dealt in turn, one is busy without end. Nobody
// asks for anything else.
func TestStall_OneBusyWorker(t *testing.T) {
	var dealt atomic.Int64
	f := startFake(t, "127.0.0.1:0", func(c *fakeConn, body []byte) {
		if dealt.Add(1)%3 != 1 {
			c.reply(body)
		}
	})
	c := openStalling(t, ReqConfig{Addr: f.addr(), Probe: probeBody, ProbeAfter: 5 * time.Millisecond,
		StuckAfter: 300 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	c.Go(ctx, never, "", []byte("long"), func(_ []byte, err error) { answer <- err })
	patience.WaitFor(t, "many probes", func() bool {
		if s := c.Stats(); !s.Up || s.Stalled != "" {
			t.Fatalf("%+v", s)
		}
		return dealt.Load() > 12*maxProbes
	})
	cancel()
	check.ErrorIs(t, <-answer, context.Canceled)
}

// TestBusyIsNotStuck: one request takes long, others are answered meanwhile.
func TestBusyIsNotStuck(t *testing.T) {
	release := make(chan struct{})
	f := startFake(t, "127.0.0.1:0", func(c *fakeConn, body []byte) {
		go func() {
			if bytes.Equal(body, []byte("long")) {
				<-release
			}
			c.reply(body)
		}()
	})
	c := openStalling(t, ReqConfig{Addr: f.addr(), Probe: probeBody, ProbeAfter: time.Hour, StuckAfter: time.Minute})
	answer := make(chan error, 1)
	c.Go(t.Context(), never, "", []byte("long"), func(_ []byte, err error) { answer <- err })
	if _, err := c.Do(t.Context(), []byte("short")); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	now := c.lastReply
	for cn := range c.conns {
		cn.asked = now.Add(-time.Hour)
	}
	c.mu.Unlock()
	c.checkWorkers(now.Add(59 * time.Second)) // the long one is old, but something else was answered
	if !c.Up() {
		t.Error("a busy master was taken for a stuck one")
	}
	c.checkWorkers(now.Add(61 * time.Second))
	if c.Up() {
		t.Error("a stuck master was taken for a busy one")
	}
	close(release)
	check.ErrorIs(t, <-answer, ErrLost)
	patience.WaitFor(t, "up again, for the long one was answered", c.Up)
}

// TestSilentMaster: nothing comes from it, not even PONGs; the connections stay, and it goes on where it was.
func TestSilentMaster(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", echo)
	relay := startStill(t, f.addr())
	c := openStalling(t, ReqConfig{
		Addr: relay.ln.Addr().String(), Heartbeat: 10 * time.Millisecond, HeartbeatTimeout: 500 * time.Millisecond,
		DrainTimeout: time.Minute,
	})
	if _, err := c.Do(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	relay.set(true)
	under := make(chan error, 1)
	c.Go(t.Context(), never, "", []byte("y"), func(_ []byte, err error) { under <- err })
	patience.WaitFor(t, "silent", func() bool { return c.Stats().Stalled == Silent })
	check.ErrorIs(t, <-under, ErrLost, "a call under way")
	if _, err := c.Do(t.Context(), []byte("y")); !errors.Is(err, ErrDown) {
		t.Errorf("a call to a silent master: %v", err)
	}
	_, before := f.count()
	relay.set(false)
	patience.WaitFor(t, "up again", c.Up)
	if got, err := c.Do(t.Context(), []byte("z")); err != nil || string(got) != "z" {
		t.Errorf("%q, %v", got, err)
	}
	if _, after := f.count(); after != before {
		t.Errorf("%d connections were made anew", after-before)
	}
}

// While each worker may be busy with a call that takes long, a short silence means nothing. It does when those calls
// were given up, and a long one always does: a master that hangs gets such calls all the time.
func TestWorkersBusyWithLongCalls(t *testing.T) {
	for name, givenUp := range map[string]bool{"given up": true, "under way for too long": false} {
		t.Run(name, func(t *testing.T) { testWorkersBusyWithLongCalls(t, givenUp) })
	}
}

func testWorkersBusyWithLongCalls(t *testing.T, givenUp bool) {
	const busy = 3
	w := &workers{}
	f := startFake(t, "127.0.0.1:0", w.handle)
	c := openStalling(t, ReqConfig{
		Addr: f.addr(), Probe: probeBody, ProbeAfter: time.Hour, StuckAfter: time.Minute, Timeout: 50 * time.Millisecond,
		Workers: busy,
	})
	w.sleep()
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, busy)
	for _, from := range []string{Long + "a", Long + "", Waiting + "b"} {
		c.Go(ctx, never, from, []byte("pillar"), func(_ []byte, err error) { ended <- err })
	}
	short := make(chan error, 1)
	c.Go(ctx, never, "c", []byte("short"), func(_ []byte, err error) { short <- err })
	check.ErrorIs(t, <-short, ErrTimeout, "a call that does not take long")
	patience.WaitFor(t, "sent", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.stuckAfter() == c.cfg.BusyAtMost })
	late := time.Now().Add(2 * time.Minute)
	c.checkWorkers(late)
	if !c.Up() || len(ended) > 0 {
		t.Errorf("busy workers were taken for stuck ones: %+v", c.Stats())
	}
	if givenUp {
		giveUp()
		for range busy {
			<-ended
		}
	} else {
		late = late.Add(2 * time.Minute)
	}
	c.checkWorkers(late)
	if c.Stats().Stalled != Stuck {
		t.Errorf("not stuck: %+v", c.Stats())
	}
	giveUp()
	w.wake()
}
