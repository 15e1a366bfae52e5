package feed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
)

var pace = Timing{Settle: 10 * time.Millisecond, Digest: time.Minute, Retry: time.Second, RetryMax: 4 * time.Second}

// sender notes what it is told to do.
type sender struct {
	line *Line[int]
	w    *world

	mu      sync.Mutex
	err     error
	urgent  int
	digests []bool
	sent    []int
	batches []int
	failed  []time.Duration // since the start
	fits    int             // names in a turn; 0: all
	gate    chan struct{}   // not nil: names are on their way until it gives something
}

func (s *sender) First(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.urgent == 0 || s.err != nil {
		return false, s.err
	}
	s.urgent--
	return true, nil
}

func (s *sender) Digest(_ context.Context, ask bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.digests = append(s.digests, ask)
	}
	return s.err
}

func (s *sender) Send(_ context.Context, names []int) (rest []int, err error) {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.batches = append(s.batches, len(names))
	if s.fits > 0 && len(names) > s.fits {
		names, rest = names[:s.fits], names[s.fits:]
	}
	s.sent = append(s.sent, names...)
	return rest, nil
}

func (s *sender) Failed(error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, time.Since(s.w.began))
}

func (s *sender) breaks(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// world is a feed and the members it follows.
type world struct {
	t       *testing.T
	began   time.Time
	changed chan struct{}
	ready   chan struct{}
	feed    *Feed[int, *sender]

	mu      sync.Mutex
	members []node.ID
	after   []bool
}

// newWorld opens a feed, in a bubble of synctest.
func newWorld(t *testing.T, change func(*Config[int, *sender]), members ...node.ID) *world {
	w := &world{t: t, began: time.Now(), changed: make(chan struct{}), ready: make(chan struct{}), members: members}
	cfg := Config[int, *sender]{
		Members: func() []node.ID {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(w.members)
		},
		Ready: w.ready, New: func(l *Line[int]) *sender { return &sender{line: l, w: w} },
		After: func(changed bool) { w.mu.Lock(); w.after = append(w.after, changed); w.mu.Unlock() },
		Limit: 100, Batch: 10, Timing: pace,
	}
	if change != nil {
		change(&cfg)
	}
	w.feed = New(cfg)
	w.feed.Open(t.Context(), w.changed)
	synctest.Wait()
	return w
}

func (w *world) set(members ...node.ID) {
	w.mu.Lock()
	w.members = members
	w.mu.Unlock()
	w.changed <- struct{}{}
	time.Sleep(pace.Settle)
	synctest.Wait()
}

func (w *world) peer(id node.ID) *sender {
	w.t.Helper()
	s, ok := w.feed.Peer(id)
	if !ok {
		w.t.Fatalf("no line to %s", id)
	}
	return s
}

func (s *sender) has(t *testing.T, digests []bool, sent ...int) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	check.EqualSlices(t, s.digests, digests, "digests")
	check.EqualSlices(t, slices.Sorted(slices.Values(s.sent)), sent, "sent")
}

func TestNewsReachEveryMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "a", "b")
		defer w.feed.Close()
		w.feed.Add(1, 2)
		a, b := w.peer("a"), w.peer("b")
		a.has(t, nil)
		if st := w.feed.Status(); len(st) != 2 || st[0].ID != "a" || st[0].Pending != 2 || !st[0].Digest {
			t.Errorf("%+v", st)
		}
		close(w.ready)
		a.has(t, []bool{true}, 1, 2)
		b.has(t, []bool{true}, 1, 2)
		a.line.Add(3)
		a.has(t, []bool{true}, 1, 2, 3)
		b.has(t, []bool{true}, 1, 2)
		time.Sleep(pace.Digest)
		b.has(t, []bool{true, false}, 1, 2)
	})
}

// What is on its way waits in no list, and a member has not got it yet.
func TestStatus_OnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "a")
		defer w.feed.Close()
		a := w.peer("a")
		a.gate = make(chan struct{})
		close(w.ready)
		w.feed.Add(1)
		synctest.Wait()
		if st := a.line.Status(); st.Pending != 0 || !st.Busy {
			t.Errorf("on its way: %+v", st)
		}
		a.gate <- struct{}{}
		a.has(t, []bool{true}, 1)
		if st := a.line.Status(); st.Busy {
			t.Errorf("arrived: %+v", st)
		}
	})
}

func TestMembersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "a", "b")
		defer w.feed.Close()
		close(w.ready)
		w.set("b", "c")
		if _, ok := w.feed.Peer("a"); ok || len(w.feed.Peers()) != 2 {
			t.Error("a is still there")
		}
		w.set("b", "c")
		if want := []bool{true, true, false}; !slices.Equal(w.after, want) {
			t.Errorf("after %v, not %v", w.after, want)
		}
		w.peer("c").has(t, []bool{true})
		close(w.changed) // of a source that has ended
		synctest.Wait()
		w.feed.Add(1)
		w.peer("b").has(t, []bool{true}, 1)
	})
}

func TestFailedTurnsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "a")
		defer w.feed.Close()
		a := w.peer("a")
		a.breaks(errors.New("away"))
		close(w.ready)
		w.feed.Add(1, 2)
		time.Sleep(16 * time.Second)
		synctest.Wait()
		if want := []time.Duration{0, 1e9, 3e9, 7e9, 11e9, 15e9}; !slices.Equal(a.failed, want) {
			t.Errorf("failed at %v, not %v", a.failed, want)
		}
		if st := a.line.Status(); st.Err == nil || st.Pending != 2 || !st.Digest {
			t.Errorf("%+v", st)
		}
		a.breaks(nil)
		time.Sleep(pace.RetryMax)
		a.has(t, []bool{true}, 1, 2)
		check.NoError(t, a.line.Err())
	})
}

// Whoever was away and is heard of gets what it lacks without waiting for the pause to end.
func TestAlive_EndsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "a")
		defer w.feed.Close()
		a := w.peer("a")
		a.line.Alive() // of no use to a line that has not failed
		a.breaks(errors.New("away"))
		close(w.ready)
		time.Sleep(3500 * time.Millisecond)
		a.line.Alive() // in the pause until 7 s: heard of, but still not to be reached
		synctest.Wait()
		a.line.Alive() // the least pause has yet to pass
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []time.Duration{0, 1e9, 3e9, 4e9}; !slices.Equal(a.failed, want) {
			t.Errorf("failed at %v, not %v", a.failed, want)
		}
		a.breaks(nil)
		time.Sleep(pace.Retry)
		a.line.Alive()
		a.has(t, []bool{true})
	})
}

func TestBatchesAndRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "a")
		defer w.feed.Close()
		a := w.peer("a")
		a.fits = 4
		all := make([]int, 25)
		for i := range all {
			all[i] = i
		}
		w.feed.Add(all...)
		close(w.ready)
		a.has(t, []bool{true}, all...)
		if most := slices.Max(a.batches); most != 10 {
			t.Errorf("batches %v", a.batches)
		}
	})
}

// What does not fit the bound is found by a digest: ours brings it, or the member's own tells of it.
func TestMoreNamesThanTheBound(t *testing.T) {
	for _, covers := range []bool{false, true} {
		t.Run(fmt.Sprint("covers ", covers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(c *Config[int, *sender]) { c.Covers, c.Limit = covers, 3 }, "a")
				defer w.feed.Close()
				a := w.peer("a")
				close(w.ready)
				synctest.Wait()
				a.line.Add(1, 2, 3, 4)
				want := []int{1, 2, 3}
				if covers {
					want = nil
				}
				a.has(t, []bool{true, !covers}, want...)
			})
		})
	}
}

func TestConfig_Covers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config[int, *sender]) { c.Covers = true }, "a")
		defer w.feed.Close()
		a := w.peer("a")
		w.feed.Add(1) // the first digest brings it
		close(w.ready)
		a.has(t, []bool{true})
		w.feed.Add(2)
		a.has(t, []bool{true}, 2)
	})
}

func TestOffMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "a")
		defer w.feed.Close()
		a := w.peer("a")
		a.line.Add(1)
		a.line.SetOff(true)
		a.line.Add(2)
		close(w.ready)
		w.feed.Tell(false)
		a.has(t, []bool{true})
		a.line.SetOff(false)
		a.line.Add(3)
		a.has(t, []bool{true}, 3)
	})
}

// First goes first, and what waits there alone is sent when the line is woken.
func TestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config[int, *sender]) { c.Timing.Linger = time.Second }, "a")
		defer w.feed.Close()
		close(w.ready)
		time.Sleep(time.Minute / 2)
		a := w.peer("a")
		a.mu.Lock()
		a.urgent = 3
		a.mu.Unlock()
		a.line.Wake()
		time.Sleep(time.Second)
		synctest.Wait()
		check.Equal(t, a.urgent, 0, "left")
	})
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "a", "b")
		defer w.feed.Close()
		a, b := w.peer("a").line, w.peer("b").line
		a.Lacks(10, 1, 2)
		a.Lacks(5)
		b.Lacks(2, 1)
		b.Heard()
		w.feed.Got(1)
		want := []Progress{{ID: "a", Told: 15, Lacking: 1}, {ID: "b", Whole: true, Told: 2}}
		if got := w.feed.Progress(); !slices.Equal(got, want) || got[0].Done() || !got[1].Done() {
			t.Errorf("%+v", got)
		}
		a.Heard()
		a.Lacks(1) // once it was whole, it stays so
		w.feed.Got(2)
		if p := a.Progress(); !p.Done() || p.Told != 15 {
			t.Errorf("%+v", p)
		}
		a.Heard()
		a.SetOff(true)
		if p := a.Progress(); !p.Done() || p.Told != 1 || !p.Off {
			t.Errorf("%+v", p)
		}
	})
}

// Nothing is lost under many hands: what was added is sent, whatever fails meanwhile.
func TestFeed_ConcurrentAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config[int, *sender]) { c.Limit = 10_000 }, "a", "b", "c")
		defer w.feed.Close()
		close(w.ready)
		var wg sync.WaitGroup
		for hand := range 8 {
			wg.Go(func() {
				for i := range 200 {
					w.feed.Add(hand*200 + i)
					if i%50 == 0 {
						w.feed.Tell(false)
						w.feed.Got(i)
						_, _ = w.feed.Status(), w.feed.Progress()
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		wg.Go(func() {
			for i := range 20 {
				w.peer("b").breaks(map[bool]error{true: errors.New("away")}[i%2 == 0])
				time.Sleep(10 * time.Millisecond)
			}
		})
		wg.Wait()
		w.peer("b").breaks(nil)
		time.Sleep(pace.RetryMax)
		synctest.Wait()
		for _, s := range w.feed.Peers() {
			seen := map[int]bool{}
			s.mu.Lock()
			for _, n := range s.sent {
				seen[n] = true
			}
			s.mu.Unlock()
			if len(seen) != 1600 {
				t.Errorf("%s got %d", s.line.ID(), len(slices.Collect(maps.Keys(seen))))
			}
		}
	})
}

// A sender that hangs in a call ends with its context.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config[int, hanging]{
			Members: func() []node.ID { return []node.ID{"a"} }, New: func(*Line[int]) hanging { return hanging{} },
			Ready: closed(), Timing: pace,
		})
		f.Close() // before Open
		f.Open(t.Context(), nil)
		synctest.Wait()
		f.Close()
		f.Add(1)
	})
}

type hanging struct{}

func (hanging) First(ctx context.Context) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}
func (hanging) Digest(context.Context, bool) error         { return nil }
func (hanging) Send(context.Context, []int) ([]int, error) { return nil, nil }
func (hanging) Failed(error)                               {}
func closed() <-chan struct{}                              { c := make(chan struct{}); close(c); return c }
