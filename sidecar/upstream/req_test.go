package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

func TestGoRunsInOrderOfTheQueue(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", echo)
	c := openReq(t, ReqConfig{Addr: f.addr(), MaxConns: 1})
	var got []int
	done := make(chan struct{})
	for i := range 50 {
		c.Go(context.Background(), "", []byte{byte(i)}, func(_ []byte, err error) {
			if got = append(got, i); len(got) == 50 {
				close(done)
			}
			if err != nil {
				t.Error(err)
			}
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
		c.Go(context.Background(), "", nil, func([]byte, error) {})
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

func TestConnectionThatNeverDrainsIsClosed(t *testing.T) {
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

func TestCancelQueuedAndInFlight(t *testing.T) {
	block := make(chan struct{})
	f := startFake(t, "127.0.0.1:0", func(c *fakeConn, body []byte) { <-block; c.reply(body) })
	c := openReq(t, ReqConfig{Addr: f.addr(), MaxConns: 1})
	waitUp(t, c, true)
	ctx, cancel := context.WithCancel(context.Background())
	errs := make(chan error, 2)
	for range 2 {
		c.Go(ctx, "", nil, func(_ []byte, err error) { errs <- err })
	}
	eventually(t, func() (bool, any) { return c.Stats().Waiting == 1, c.Stats() })
	cancel()
	retryable := 0
	for range 2 {
		err := <-errs
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled call: %v", err)
		}
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
		c.Go(context.Background(), "", nil, func(_ []byte, err error) { errs <- err })
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("outstanding call: %v", err)
		}
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
