package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestDoEcho(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", echo)
	c := openReq(t, ReqConfig{Addr: f.addr(), Registerer: prometheus.NewRegistry()})
	for _, size := range []int{0, 1, 255, 256, directWrite, directWrite + 1, 3 << 20} {
		body := bytes.Repeat([]byte{'x'}, size)
		got, err := c.Do(context.Background(), body)
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes: %d back, %v", size, len(got), err)
		}
	}
	if s := c.Stats(); s.Replies != 7 || s.Failures != 0 || !s.Up {
		t.Errorf("stats %+v", s)
	}
}

// A part of a node may ask before the client is open, at any moment of its opening.
func TestReqClient_CallWhileOpening(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", echo)
	c := NewReqClient(ReqConfig{Addr: f.addr()})
	if _, err := c.Do(t.Context(), []byte("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("before it is open: %v", err)
	}
	asked := make(chan error)
	go func() {
		for {
			_, err := c.Do(t.Context(), []byte("x"))
			if !errors.Is(err, ErrClosed) {
				asked <- err
				return
			}
		}
	}()
	require.NoError(t, c.Open(t.Context()))
	defer c.Close()
	check.NoError(t, <-asked, "once it is open")
}

// Each reply reaches its own call, and no connection ever has two requests in flight.
func TestOneInFlightPerConnection(t *testing.T) {
	var busy sync.Map
	f := startFake(t, "127.0.0.1:0", func(c *fakeConn, body []byte) {
		if _, was := busy.LoadOrStore(c, true); was {
			t.Error("two requests in flight on one connection")
		}
		go func() {
			time.Sleep(time.Millisecond)
			busy.Delete(c)
			c.reply(body)
		}()
	})
	c := openReq(t, ReqConfig{Addr: f.addr(), MaxConns: 5})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			want := fmt.Sprint(i)
			got, err := c.Do(context.Background(), []byte(want))
			if err != nil || string(got) != want {
				t.Errorf("call %s got %q, %v", want, got, err)
			}
		})
	}
	wg.Wait()
	if _, total := f.count(); total > 5 {
		t.Errorf("%d connections, at most 5 allowed", total)
	}
}

func TestReqClient_GoKeepsOrder(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", echo)
	c := openReq(t, ReqConfig{Addr: f.addr(), MaxConns: 1})
	var got []int
	done := make(chan struct{})
	for i := range 50 {
		c.Go(context.Background(), never, "", []byte{byte(i)}, func(_ []byte, err error) {
			if got = append(got, i); len(got) == 50 {
				close(done)
			}
			check.NoError(t, err)
		})
	}
	<-done
	for i := range got {
		if got[i] != i {
			t.Fatalf("order %v", got)
		}
	}
}

func TestQueueIsBounded(t *testing.T) {
	block := make(chan struct{})
	f := startFake(t, "127.0.0.1:0", func(c *fakeConn, body []byte) { <-block; c.reply(body) })
	defer close(block)
	c := openReq(t, ReqConfig{Addr: f.addr(), MaxConns: 1, MaxQueue: 2})
	waitUp(t, c, true)
	for range 3 {
		c.Go(context.Background(), never, "", nil, func([]byte, error) {})
	}
	_, err := c.Do(context.Background(), nil)
	if !errors.Is(err, ErrBusy) || !Retryable(err) {
		t.Errorf("fourth call of one place and a queue of two: %v", err)
	}
}

// A timed out request's late reply must not reach the next call on that connection.
func TestStaleReplyIsDrained(t *testing.T) {
	var first atomic.Bool
	f := startFake(t, "127.0.0.1:0", func(c *fakeConn, body []byte) {
		if first.CompareAndSwap(false, true) {
			go func() { time.Sleep(60 * time.Millisecond); c.reply([]byte("stale")) }()
			return
		}
		c.reply(body)
	})
	c := openReq(t, ReqConfig{Addr: f.addr(), MaxConns: 1, Timeout: 20 * time.Second})
	waitUp(t, c, true)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Do(ctx, []byte("slow"))
	if !errors.Is(err, context.DeadlineExceeded) || Retryable(err) {
		t.Fatalf("slow call: %v", err)
	}
	got, err := c.Do(context.Background(), []byte("next"))
	if err != nil || string(got) != "next" {
		t.Fatalf("next call got %q, %v", got, err)
	}
	if _, total := f.count(); total != 1 {
		t.Errorf("%d connections, the first one was to be used again", total)
	}
}

func TestReqClient_DrainTimeout(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", func(c *fakeConn, body []byte) {
		if c.n > 1 {
			c.reply(body)
		}
	})
	var ups atomic.Int32
	c := openReq(t, ReqConfig{
		Addr: f.addr(), MaxConns: 1, Timeout: 20 * time.Millisecond, DrainTimeout: 10 * time.Millisecond,
		OnUp: func() { ups.Add(1) },
	})
	waitUp(t, c, true)
	if _, err := c.Do(context.Background(), nil); !errors.Is(err, ErrTimeout) || Retryable(err) {
		t.Fatalf("first call: %v", err)
	}
	eventually(t, func() (bool, any) {
		got, err := c.Do(context.Background(), []byte("again"))
		return err == nil && string(got) == "again", err
	})
	if n := ups.Load(); n != 1 {
		t.Errorf("OnUp ran %d times: giving up a request is no loss of the master", n)
	}
}

// never is a time that no call of these tests sees.
var never = time.Now().Add(time.Hour)

// A call ends at the time it is given, in flight or queued, whatever its context.
func TestGoEndsInTime(t *testing.T) {
	block := make(chan struct{})
	f := startFake(t, "127.0.0.1:0", func(c *fakeConn, body []byte) { <-block; c.reply(body) })
	c := openReq(t, ReqConfig{Addr: f.addr(), MaxConns: 1, Timeout: time.Hour})
	waitUp(t, c, true)
	errs := make(chan error, 3)
	for _, by := range []time.Time{time.Now().Add(20 * time.Millisecond), time.Now().Add(20 * time.Millisecond),
		time.Now().Add(-time.Second)} {
		c.Go(context.Background(), by, "", nil, func(_ []byte, err error) { errs <- err })
	}
	retryable := 0
	for range 3 {
		err := <-errs
		check.ErrorIs(t, err, ErrTimeout, "ended with")
		if Retryable(err) {
			retryable++
		}
	}
	close(block)
	if retryable != 2 {
		t.Errorf("%d were never sent", retryable)
	}
}

func TestCancelQueuedAndInFlight(t *testing.T) {
	block := make(chan struct{})
	f := startFake(t, "127.0.0.1:0", func(c *fakeConn, body []byte) { <-block; c.reply(body) })
	c := openReq(t, ReqConfig{Addr: f.addr(), MaxConns: 1})
	waitUp(t, c, true)
	ctx, cancel := context.WithCancel(context.Background())
	errs := make(chan error, 2)
	for range 2 {
		c.Go(ctx, never, "", nil, func(_ []byte, err error) { errs <- err })
	}
	eventually(t, func() (bool, any) { return c.Stats().Waiting == 1, c.Stats() })
	cancel()
	retryable := 0
	for range 2 {
		err := <-errs
		check.ErrorIs(t, err, context.Canceled, "cancelled call")
		if Retryable(err) {
			retryable++
		}
	}
	if retryable != 1 {
		t.Errorf("%d of the two are retryable, want the queued one only", retryable)
	}
	close(block)
	if got, err := c.Do(context.Background(), []byte("on")); err != nil || string(got) != "on" {
		t.Errorf("after the cancel: %q, %v", got, err)
	}
	if _, err := c.Do(ctx, nil); !errors.Is(err, context.Canceled) || !Retryable(err) {
		t.Errorf("a call on a dead context: %v", err)
	}
}

func TestDownAndUpAgain(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", echo)
	addr := f.addr()
	f.stop()
	var ups atomic.Int32
	c := openReq(t, ReqConfig{Addr: addr, BackoffMax: 20 * time.Millisecond})
	c.OnUp(func() { ups.Add(1) })
	if _, err := c.Do(context.Background(), nil); !errors.Is(err, ErrDown) || !Retryable(err) {
		t.Fatalf("call of a master that is down: %v", err)
	}
	f = startFake(t, addr, echo)
	waitUp(t, c, true)
	if _, err := c.Do(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() (bool, any) { return ups.Load() == 1, ups.Load() })
	f.stop()
	waitUp(t, c, false)
	startFake(t, addr, echo)
	eventually(t, func() (bool, any) { return ups.Load() == 2, ups.Load() })
}

// A connection that the pool does not want, since another was lost while it was made, leaves its place to the next one
// at once.
func TestPlaceOfAnUnwantedConnection(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", echo)
	var c *ReqClient
	var dials atomic.Int32
	c = NewReqClient(ReqConfig{
		Addr: f.addr(), MaxConns: 1, IdleTimeout: time.Hour,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials.Add(1) == 1 {
				c.mu.Lock()
				c.epoch++
				c.mu.Unlock()
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	})
	require.NoError(t, c.Open(t.Context()))
	t.Cleanup(func() { _ = c.Close() })
	waitUp(t, c, true)
}

// A master that drops whoever asks it something has been up all the while; one that was down comes up anew.
func TestSinceWhenItIsUp(t *testing.T) {
	var f *fakeMaster
	f = startFake(t, "127.0.0.1:0", func(*fakeConn, []byte) { f.cut() })
	c := openReq(t, ReqConfig{Addr: f.addr(), BackoffMax: 20 * time.Millisecond})
	waitUp(t, c, true)
	since := c.Stats().Since
	for range 3 {
		if _, err := c.Do(context.Background(), nil); !errors.Is(err, ErrLost) {
			t.Fatalf("dropped: %v", err)
		}
		waitUp(t, c, true)
	}
	if now := c.Stats().Since; since.IsZero() || !now.Equal(since) {
		t.Errorf("up since %v, then %v", since, now)
	}
	addr := f.addr()
	f.stop()
	eventually(t, func() (bool, any) { s := c.Stats(); return s.Since.IsZero(), s })
	startFake(t, addr, echo)
	waitUp(t, c, true)
	if now := c.Stats().Since; !now.After(since) {
		t.Errorf("came up anew: %v, before %v", now, since)
	}
}

func TestLostInFlight(t *testing.T) {
	var f *fakeMaster
	f = startFake(t, "127.0.0.1:0", func(c *fakeConn, body []byte) {
		if string(body) == "die" {
			f.cut()
			return
		}
		c.reply(body)
	})
	c := openReq(t, ReqConfig{Addr: f.addr()})
	if _, err := c.Do(context.Background(), []byte("die")); !errors.Is(err, ErrLost) || Retryable(err) {
		t.Errorf("call whose connection broke: %v", err)
	}
	if got, err := c.Do(context.Background(), []byte("alive")); err != nil || string(got) != "alive" {
		t.Errorf("next call: %q, %v", got, err)
	}
}

func TestCloseEndsWhatIsOutstanding(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", func(*fakeConn, []byte) {})
	c := openReq(t, ReqConfig{Addr: f.addr(), MaxConns: 1})
	waitUp(t, c, true)
	errs := make(chan error, 2)
	for range 2 {
		c.Go(context.Background(), never, "", nil, func(_ []byte, err error) { errs <- err })
	}
	require.NoError(t, c.Close())
	for range 2 {
		check.ErrorIs(t, <-errs, ErrClosed, "outstanding call")
	}
	if _, err := c.Do(context.Background(), nil); !errors.Is(err, ErrClosed) || !Retryable(err) {
		t.Errorf("call after Close: %v", err)
	}
}

func TestIdleConnectionsAreTrimmed(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", func(c *fakeConn, body []byte) { time.Sleep(5 * time.Millisecond); c.reply(body) })
	c := openReq(t, ReqConfig{Addr: f.addr(), IdleTimeout: 40 * time.Millisecond})
	waitUp(t, c, true)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _, _ = c.Do(context.Background(), nil) })
	}
	wg.Wait()
	if c.Stats().Conns < 2 {
		t.Fatal("the pool did not grow")
	}
	eventually(t, func() (bool, any) { return c.Stats().Conns == 1, c.Stats() })
	if !c.Up() {
		t.Error("trimming made the master look lost")
	}
}

func TestBrokenPeers(t *testing.T) {
	for name, handle := range map[string]func(c *fakeConn, body []byte){
		"no delimiter":  func(c *fakeConn, _ []byte) { _ = c.WriteMessage([]byte("x")) },
		"three parts":   func(c *fakeConn, _ []byte) { _ = c.WriteMessage(nil, nil, nil) },
		"too large":     func(c *fakeConn, _ []byte) { c.reply(make([]byte, 4097)) },
		"hangs up":      func(c *fakeConn, _ []byte) { c.Close() },
		"second answer": func(c *fakeConn, b []byte) { c.reply(b); c.reply(b); c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t, "127.0.0.1:0", handle)
			c := openReq(t, ReqConfig{Addr: f.addr(), MaxReply: 4096})
			for range 3 {
				if _, err := c.Do(context.Background(), nil); err == nil && name != "second answer" {
					t.Error("no error")
				}
			}
		})
	}
}

func TestRequestLimit(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", echo)
	c := openReq(t, ReqConfig{Addr: f.addr(), MaxRequest: 10})
	if _, err := c.Do(context.Background(), make([]byte, 11)); !errors.Is(err, ErrTooLarge) || !Retryable(err) {
		t.Errorf("too large a request: %v", err)
	}
}

// A sender whose calls keep the master's workers waiting has PerSender of them there, whether or not anybody waits for
// the answer; the calls of others, and his own when one is answered, go on.
func TestReqClient_PerSenderLimit(t *testing.T) {
	var mu sync.Mutex
	var waiting []*fakeConn
	f := startFake(t, "127.0.0.1:0", func(c *fakeConn, body []byte) {
		if string(body) != "wait" {
			c.reply(body)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		waiting = append(waiting, c)
	})
	at := func() int { mu.Lock(); defer mu.Unlock(); return len(waiting) }
	answer := func() {
		mu.Lock()
		defer mu.Unlock()
		waiting[0].reply([]byte("late"))
		waiting = waiting[1:]
	}
	reg := prometheus.NewRegistry()
	c := openReq(t, ReqConfig{
		Addr: f.addr(), MaxConns: 16, PerSender: 2, DrainTimeout: time.Millisecond, Timeout: time.Minute, Registerer: reg,
	})
	waitUp(t, c, true)
	ctx, giveUp := context.WithCancel(context.Background())
	ends := make(chan error, 8)
	for range 8 {
		c.Go(ctx, never, "mallory", []byte("wait"), func(_ []byte, err error) { ends <- err })
	}
	others := func() {
		t.Helper()
		for i := range 32 {
			got := make(chan error, 1)
			c.Go(context.Background(), never, fmt.Sprint("minion", i%3), []byte("x"), func(_ []byte, err error) { got <- err })
			require.NoError(t, <-got)
		}
	}
	eventually(t, func() (bool, any) { return at() == 2, at() })
	others()
	if n, s := at(), c.Stats(); n != 2 || s.Waiting != 6 {
		t.Fatalf("the master works on %d calls of one sender, %d wait", n, s.Waiting)
	}
	answer()
	require.NoError(t, <-ends)
	eventually(t, func() (bool, any) { return at() == 2, at() })
	giveUp() // nobody waits for them any more, and the master works on two all the same
	for range 7 {
		if err := <-ends; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	last := make(chan string, 1)
	c.Go(context.Background(), never, "mallory", []byte("y"), func(got []byte, _ error) { last <- string(got) })
	eventually(t, func() (bool, any) { c.mu.Lock(); defer c.mu.Unlock(); return c.kept == 2, c.kept })
	others()
	if s := c.Stats(); s.Waiting != 1 || at() != 2 {
		t.Fatalf("the calls that were given up do not count: %+v", s)
	}
	answer()
	check.Equal(t, <-last, "y", "the sender's next call")
	answer()
	eventually(t, func() (bool, any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.queue.busy) == 0 && c.kept == 0, fmt.Sprint(c.queue.busy)
	})
	if n := testutil.ToFloat64(c.metrics.held); n < 2 { // the first time for the six, then for the last
		t.Errorf("that the sender had to wait is counted %v times", n)
	}
}

// What is kept for replies that nobody waits for is a share of the connections only, and ends; nor does what was lost
// with its master count.
func TestStaleCallsEnd(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", func(*fakeConn, []byte) {})
	c := openReq(t, ReqConfig{
		Addr: f.addr(), MaxConns: 8, PerSender: 8, DrainTimeout: time.Millisecond, StaleTimeout: 20 * time.Millisecond,
		BackoffMax: time.Millisecond,
	})
	waitUp(t, c, true)
	count := func() (busy, kept int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.queue.busy["mallory"], c.kept
	}
	for _, end := range []func(){func() {}, f.cut} {
		ctx, giveUp := context.WithCancel(context.Background())
		for range 8 {
			c.Go(ctx, never, "mallory", nil, func([]byte, error) {})
		}
		eventually(t, func() (bool, any) { busy, _ := count(); return busy == 8, busy })
		giveUp()
		end()
		eventually(t, func() (bool, any) {
			busy, kept := count()
			if kept > 2 {
				t.Errorf("%d of 8 connections are kept", kept)
			}
			return busy == 0 && kept == 0, busy
		})
		waitUp(t, c, true)
	}
}
