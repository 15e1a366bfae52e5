package edge

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/zmtp"
)

// TestRotate wants every subscriber to get every publication once, those
// before its nudge under the old generation, those after under the new one.
func TestRotate(t *testing.T) {
	for name, topic := range map[string]string{"unfiltered": "", "filtered": broadcast} {
		t.Run(name, func(t *testing.T) {
			e := openPub(t, PubConfig{Shards: 2})
			var subs []*zmtp.Client
			for range 30 {
				subs = append(subs, subscribe(t, e, topic))
			}
			var rotated sync.WaitGroup
			rotated.Add(1)
			const n, before = 600, 100
			go func() {
				defer rotated.Done()
				for i := range n {
					if i == before {
						e.Rotate(Rotation{Window: 100 * time.Millisecond, Nudge: []byte("nudge")})
					}
					if i > before && i%20 == 0 {
						time.Sleep(5 * time.Millisecond) // spread over the window
					}
					p := Publication{Body: []byte(fmt.Sprintf("old %d", i))}
					if i >= before {
						p = Publication{Body: []byte(fmt.Sprintf("new %d", i)), Prev: []byte(fmt.Sprintf("old %d", i))}
					}
					e.Publish(p)
				}
			}()
			var wg sync.WaitGroup
			moves := make([]int, len(subs))
			for k, c := range subs {
				wg.Go(func() { moves[k] = followRotation(t, c, n) })
			}
			wg.Wait()
			rotated.Wait()
			late := 0
			for _, m := range moves {
				if m < before {
					t.Errorf("moved at %d, before the rotation", m)
				}
				if m > before+5 {
					late++
				}
			}
			if late == 0 {
				t.Error("all moved at once")
			}
			fresh := subscribe(t, e, "")
			e.Publish(Publication{Body: []byte("new"), Prev: []byte("old")})
			next(t, fresh, "new")
			if st := e.Stats(); st.Generation != 1 || st.Cut != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// followRotation reads n publications and one nudge and returns where the
// nudge stood.
func followRotation(t *testing.T, c *zmtp.Client, n int) (moved int) {
	want := "old"
	for i := 0; i < n || moved == 0; {
		p, err := c.ReadMessage()
		if err != nil {
			t.Error(err)
			return
		}
		body := string(p[len(p)-1])
		if body == "nudge" {
			check.Equal(t, moved, 0, "nudged twice")
			moved, want = i, "new"
			continue
		}
		if body != fmt.Sprintf("%s %d", want, i) {
			t.Errorf("got %q, want %s %d", body, want, i)
			return
		}
		i++
	}
	return moved
}

// publishUnmatched publishes without a worker that looks at it.
func publishUnmatched(e *PubEdge, p Publication) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.append(p)
}

// TestMove_Unmatched moves a subscriber, the first of its transport, when the worker has not come to the last
// publication: it is given that before the nudge, as the others are.
func TestMove_Unmatched(t *testing.T) {
	named := Publication{Body: []byte("wrong"), Prev: []byte("old 1"), Topics: []string{idTopic("m1"), broadcast}}
	all := Publication{Body: []byte("new 2"), Prev: []byte("wrong")}
	for name, subscribe := range map[string]func(t *testing.T, e *PubEdge) func(want ...string){
		"unfiltered": func(t *testing.T, e *PubEdge) func(want ...string) {
			c := subscribe(t, e, "")
			return func(want ...string) { expect(t, c, want...) }
		},
		"filtered": func(t *testing.T, e *PubEdge) func(want ...string) {
			c := subscribe(t, e, broadcast)
			return func(want ...string) { expect(t, c, want...) }
		},
		"tcp": func(t *testing.T, e *PubEdge) func(want ...string) { return subscribeTCP(t, e, "m1").expect },
	} {
		t.Run(name, func(t *testing.T) {
			e := openPub(t, PubConfig{Identify: said, Shards: 1})
			got := subscribe(t, e)
			s, r := e.conns.All()[0], &rotation{hurry: make(chan struct{}), done: make(chan struct{})}
			if !e.beginGeneration(r) {
				t.Fatal("closed")
			}
			publishUnmatched(e, named)
			to, _ := e.current()
			s.shard.mu.Lock()
			s.move(to, []byte("nudge"))
			s.shard.mu.Unlock()
			e.rotate(r, nil, Rotation{})
			e.Publish(all)
			got("old 1", "nudge", "new 2")
		})
	}
}

// TestRotateTwice finishes the first rotation when the second begins.
func TestRotateTwice(t *testing.T) {
	e := openPub(t, PubConfig{})
	var subs []*zmtp.Client
	for range 5 {
		subs = append(subs, subscribe(t, e, ""))
	}
	e.Publish(pub("0"))
	e.Rotate(Rotation{Window: time.Hour, Nudge: []byte("to 1")})
	fresh := subscribe(t, e, "") // on generation 1 from the start
	e.Rotate(Rotation{Nudge: []byte("to 2")})
	patience.WaitFor(t, "all have moved", func() bool { s := e.Stats(); return s.Generation == 2 && s.OnPrevious == 0 })
	e.Publish(pub("2"))
	for _, c := range subs {
		next(t, c, "0")
		next(t, c, "to 1")
		next(t, c, "to 2")
		next(t, c, "2")
	}
	next(t, fresh, "to 2")
	next(t, fresh, "2")
	e.Rotate(Rotation{Window: time.Hour}) // Close must not wait for it
}

// TestPubClose_NoNudge: a subscriber that is cut in the same moment is not asked to sign in.
func TestPubClose_NoNudge(t *testing.T) {
	e := openPub(t, PubConfig{Shards: 1})
	first, second := subscribe(t, e, ""), subscribe(t, e, "")
	e.Rotate(Rotation{Window: time.Hour, Nudge: []byte("nudge")})
	e.Publish(Publication{Body: []byte("new"), Prev: []byte("old")})
	require.NoError(t, e.Close())
	nudged := 0
	for _, c := range []*zmtp.Client{first, second} {
		for m, err := c.ReadMessage(); err == nil; m, err = c.ReadMessage() {
			if string(m[len(m)-1]) == "nudge" {
				nudged++
			}
		}
	}
	if nudged > 1 { // whose turn came at once
		t.Errorf("%d were nudged", nudged)
	}
}

// TestRotate_Young: a rotation with a window waits until the connections are old enough, and then ends in time.
func TestRotate_Young(t *testing.T) {
	e := openPub(t, PubConfig{SignInTime: time.Hour})
	c := subscribe(t, e, "")
	e.Rotate(Rotation{Window: time.Hour, Nudge: []byte("nudge")})
	e.Publish(Publication{Body: []byte("new"), Prev: []byte("old")})
	next(t, c, "old")
	e.Rotate(Rotation{Nudge: []byte("at once")}) // has the first end
	next(t, c, "nudge")
	next(t, c, "at once")
	for _, s := range e.conns.All() {
		s.since = netconn.Clock() - int64(time.Hour)
	}
	if wait := e.awaitAge(e.conns.All(), time.Minute, nil); wait != 0 {
		t.Errorf("waits %s for one that is old", wait)
	}
	if wait := e.awaitAge(nil, time.Minute, nil); wait != 0 {
		t.Errorf("waits %s for nobody", wait)
	}
	fresh := &sub{since: netconn.Clock()}
	if wait := e.awaitAge([]*sub{fresh}, 2*time.Millisecond, nil); wait != time.Millisecond {
		t.Errorf("waits %s of a window of 2 ms", wait)
	}
}

// TestRotateNewConnections: new connections start on the new generation during the window.
func TestRotateNewConnections(t *testing.T) {
	e := openPub(t, PubConfig{})
	olds := []*zmtp.Client{subscribe(t, e, ""), subscribe(t, e, "")}
	e.Rotate(Rotation{Window: time.Hour, Nudge: []byte("nudge")})
	fresh, filtered := subscribe(t, e, ""), subscribe(t, e, broadcast)
	patience.WaitFor(t, "one has moved", func() bool { return e.Stats().OnPrevious == 1 })
	e.Publish(Publication{Body: []byte("new"), Prev: []byte("old")})
	next(t, fresh, "new")
	next(t, filtered, broadcast, "new")
	stayed := 0
	for _, c := range olds {
		p, err := c.ReadMessage()
		require.NoError(t, err)
		if string(p[0]) == "old" {
			stayed++
		} else {
			next(t, c, "new")
		}
	}
	if stayed != 1 {
		t.Fatalf("%d of 2 are still on the previous generation", stayed)
	}
}

// TestRotateHolds wants nothing of what is published to reach a subscriber before it moves, and all of it, in order,
// when it does.
func TestRotateHolds(t *testing.T) {
	for name, topic := range map[string]string{"unfiltered": "", "filtered": broadcast} {
		t.Run(name, func(t *testing.T) {
			e := openPub(t, PubConfig{})
			message := func(c *zmtp.Client, body string) {
				t.Helper()
				if topic == "" {
					next(t, c, body)
				} else {
					next(t, c, topic, body)
				}
			}
			first, second := subscribe(t, e, topic), subscribe(t, e, topic)
			e.Publish(pub("0"))
			message(first, "0")
			message(second, "0")
			e.Rotate(Rotation{Window: time.Hour, Nudge: []byte("nudge"), Hold: true})
			patience.WaitFor(t, "one has moved", func() bool { return e.Stats().OnPrevious == 1 })
			fresh := subscribe(t, e, topic)
			e.Publish(pub("1"))
			e.Publish(pub("2"))
			message(fresh, "1")
			message(fresh, "2")
			// One of the two has moved; the other hears nothing.
			moved, stays := make(chan string, 8), make(chan string, 8)
			var wg sync.WaitGroup
			for _, c := range []*zmtp.Client{first, second} {
				wg.Go(func() {
					p, err := c.ReadMessage()
					if err != nil {
						return
					}
					out := moved
					if string(p[len(p)-1]) == "1" {
						out = stays
					}
					for out <- string(p[len(p)-1]); len(out) < 3; out <- string(p[len(p)-1]) {
						if p, err = c.ReadMessage(); err != nil {
							return
						}
					}
				})
			}
			patience.WaitFor(t, "who has moved hears all", func() bool { return len(moved) == 3 })
			if n := len(stays); n > 0 {
				t.Fatalf("who has not moved got %d", n)
			}
			e.rotating.Lock()
			e.finishLocked()
			e.rotating.Unlock()
			wg.Wait()
			for _, want := range []struct {
				from chan string
				text string
			}{{moved, "nudge"}, {moved, "1"}, {moved, "2"}, {stays, "1"}, {stays, "2"}, {stays, "nudge"}} {
				check.Equal(t, <-want.from, want.text)
			}
		})
	}
}

// TestRotateHold_QueueFull wants a held subscriber to get what is published when that becomes too much to wait.
func TestRotateHold_QueueFull(t *testing.T) {
	e := openPub(t, PubConfig{QueueMessages: 10})
	c := []*zmtp.Client{subscribe(t, e, ""), subscribe(t, e, "")}
	e.Rotate(Rotation{Window: time.Hour, Hold: true})
	patience.WaitFor(t, "one has moved", func() bool { return e.Stats().OnPrevious == 1 })
	for i := range 50 {
		e.Publish(pub(fmt.Sprint(i)))
	}
	for i := range 50 {
		next(t, c[0], fmt.Sprint(i))
		if i < 30 { // the newest may still wait
			next(t, c[1], fmt.Sprint(i))
		}
	}
	for _, s := range e.conns.All() {
		if s.letGo(s.moved + int64(e.cfg.SignInTime) - 1) {
			t.Error("one is cut while it signs in")
		}
	}
}

// TestRotateHold_Told: who has read something that was held signs in because of that, and needs no nudge.
func TestRotateHold_Told(t *testing.T) {
	e := openPub(t, PubConfig{Shards: 1})
	c := []*zmtp.Client{subscribe(t, e, ""), subscribe(t, e, "")}
	e.Rotate(Rotation{Window: time.Hour, Nudge: []byte("nudge"), Hold: true})
	patience.WaitFor(t, "one has moved", func() bool { return e.Stats().OnPrevious == 1 })
	next(t, c[0], "nudge")
	e.Publish(Publication{Body: []byte("new"), Prev: []byte("old")})
	for _, s := range e.conns.All() {
		if s.Mu.Lock(); s.held {
			s.unhold(netconn.Clock())
		}
		s.Mu.Unlock()
	}
	next(t, c[1], "old")
	e.Rotate(Rotation{}) // has the first end
	e.Publish(pub("2"))
	next(t, c[1], "2")
}

// TestRotateHold_Ping: a held subscriber that asks whether we live is answered, and gets nothing else. A drain lets it
// read what waits, and closes it when it has had the time to sign in.
func TestRotateHold_Ping(t *testing.T) {
	e := openPub(t, PubConfig{Shards: 1})
	first := subscribe(t, e, "")
	asks := dialRaw(t, e)
	_, err := asks.Write(zmtp.AppendSubscription(hello("SUB"), nil, true))
	require.NoError(t, err)
	patience.WaitFor(t, "subscribed", func() bool { return e.Stats().Subscribers == 2 })
	e.Rotate(Rotation{Window: time.Hour, Nudge: []byte("nudge"), Hold: true})
	e.cfg.SignInTime = time.Hour
	next(t, first, "nudge")
	e.Publish(Publication{Body: []byte("new"), Prev: []byte("old")})
	next(t, first, "new")
	heard := ""
	hear := func(want string) {
		t.Helper()
		for buf := make([]byte, 1<<10); !strings.Contains(heard, want); {
			n, err := asks.Read(buf)
			require.NoError(t, err)
			heard += string(buf[:n])
		}
	}
	for _, context := range []string{"one", "two"} {
		_, err = asks.Write(zmtp.AppendPing(nil, 0, []byte(context)))
		require.NoError(t, err)
		hear(context)
	}
	check.Equal(t, strings.Contains(heard, "old"), false, "got what was held")
	drained := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(drained)
		e.Drain(ctx, 0)
	}()
	hear("old")
	cancel()
	<-drained
	check.Equal(t, e.conns.Len(), 2, "connections") // both may be signing in
}

// TestRotate_Drain: a rotation stands still during a drain that is over before it is, unless it holds what is published,
// and always ends in time.
func TestRotate_Drain(t *testing.T) {
	for name, c := range map[string]struct {
		drain time.Duration
		hold  bool
		left  int64 // after half of the window
	}{
		"none":           {0, false, 5},
		"within":         {50 * time.Second, false, 9},
		"longer":         {time.Hour, false, 5},
		"within, hold":   {50 * time.Second, true, 5},
		"over long ago":  {-time.Second, false, 5},
		"over just then": {30 * time.Second, false, 9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, err := NewPubEdge(PubConfig{Addrs: []string{"127.0.0.1:0"}})
				require.NoError(t, err)
				r := &rotation{hurry: make(chan struct{}), done: make(chan struct{})}
				r.mute.Store(true)
				old := make([]*sub, 10)
				for i := range old {
					old[i] = &sub{since: netconn.Clock() - int64(time.Hour)}
				}
				r.left.Store(10)
				check.Equal(t, e.beginGeneration(r), true, "begun")
				if c.drain != 0 {
					e.drainedBy.Store(netconn.Clock() + int64(c.drain))
				}
				began := time.Now()
				go e.rotate(r, old, Rotation{Window: time.Minute, Hold: c.hold})
				time.Sleep(30*time.Second - time.Millisecond)
				check.Equal(t, r.left.Load(), c.left, "left in the middle")
				<-r.done
				if took := time.Since(began); took > time.Minute || r.left.Load() != 0 {
					t.Errorf("%d left after %s", r.left.Load(), took)
				}
			})
		})
	}
}

// TestSpreadStandsStill while sign-ins are behind, but not for ever.
func TestSpreadStandsStill(t *testing.T) {
	done, asked := 0, 0
	const n = 10
	how := Rotation{Window: 40 * time.Millisecond, Late: 120 * time.Millisecond,
		Busy: func() bool { asked++; return true }}
	began := time.Now()
	spread(t.Context(), n, how.Window, nil, how.stands(), func(int) { done++ })
	if took := time.Since(began); done != n || took < how.Window+how.Late || asked == 0 {
		t.Errorf("%d done after %s", done, took)
	}
	how.Busy = func() bool { return false }
	if spread(t.Context(), n, how.Window, nil, how.stands(), func(int) { done++ }); done != 2*n {
		t.Errorf("%d done", done)
	}
}
