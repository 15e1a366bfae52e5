package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/jobcache"
)

// bus is a master's bus, whose states a test sets.
type bus struct {
	mu     sync.Mutex
	down   bool          // nobody listens
	stuck  bool          // takes, and then stands still
	goes   bool          // ends between taking and telling
	gone   chan struct{} // if set, closed when it does so for the first time
	queued []string
	fired  []string
}

func (b *bus) set(f func()) { b.mu.Lock(); defer b.mu.Unlock(); f() }

func (b *bus) Takes() bool { b.mu.Lock(); defer b.mu.Unlock(); return !b.down }

func (b *bus) FireTrimmed(_ context.Context, tag string, data []byte) error {
	b.set(func() { b.queued = append(b.queued, tag+string(data)) })
	return nil
}

func (b *bus) Flush(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.goes {
		if !b.down && b.gone != nil {
			close(b.gone)
		}
		b.down = true
	}
	switch {
	case b.down:
		return jobcache.ErrBusDown
	case b.stuck:
		b.mu.Unlock()
		<-ctx.Done()
		b.mu.Lock()
		return ctx.Err()
	}
	b.fired, b.queued = append(b.fired, b.queued...), nil
	return nil
}

func (b *bus) has() []string { b.mu.Lock(); defer b.mu.Unlock(); return slices.Clone(b.fired) }

// planner makes an event of a load's text.
type planner struct{}

func (planner) Plan(load []byte, _ jobcache.Facts) (jobcache.Plan, error) {
	switch string(load) {
	case "python":
		return jobcache.Plan{}, &jobcache.NeedsPython{Reason: "a test says so"}
	case "malformed":
		return jobcache.Plan{}, jobcache.ErrMalformed
	case "return":
		return jobcache.Plan{Jobs: make([]jobcache.Job, 1)}, nil
	}
	plan := jobcache.Plan{Events: []jobcache.Event{{Tag: string(load)}}, Reply: answered}
	if string(load) == "many" {
		plan.Events = make([]jobcache.Event, 301)
	}
	if string(load) == "grows" {
		plan.Size = maxBytes
	}
	return plan, nil
}

func open(t *testing.T, b *bus, change ...func(*Config)) *Service {
	t.Helper()
	c := Config{Bus: b, Mode: Mode{Planner: planner{}}, StallTimeout: 100 * time.Millisecond}
	for _, f := range change {
		f(&c)
	}
	s, err := New(c)
	require.NoError(t, err)
	require.NoError(t, s.Open(context.Background()))
	t.Cleanup(func() { check.NoError(t, s.Close()) })
	return s
}

// take offers a load and waits for its end.
func take(t *testing.T, s *Service, load string) error {
	t.Helper()
	end := make(chan error, 2)
	s.Take("m1", []byte(load), time.Now(), func(reply []byte, err error) {
		if (string(reply) == string(answered)) != (err == nil) {
			t.Errorf("%s: answer %x with %v", load, reply, err)
		}
		end <- err
	})
	select {
	case err := <-end:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("no end")
		return nil
	}
}

func TestTake(t *testing.T) {
	for _, c := range []struct {
		name, load string
		bus        *bus
		change     func(*Config)
		want       error
		fired      []string
	}{
		{name: "fired", load: "a", bus: &bus{}, fired: []string{"a"}},
		{name: "for Python", load: "python", bus: &bus{}, want: ErrPython},
		{name: "a return", load: "return", bus: &bus{}, want: ErrPython},
		{name: "malformed", load: "malformed", bus: &bus{}, want: ErrMalformed},
		{name: "switched off", load: "a", bus: &bus{}, change: func(c *Config) { c.Mode = Mode{Reason: "off"} },
			want: ErrPython},
		{name: "no bus", load: "a", bus: &bus{down: true}, want: ErrPython},
		{name: "bus stands still", load: "a", bus: &bus{stuck: true}, want: ErrUnsure},
		{name: "bus ends in the middle", load: "a", bus: &bus{goes: true}, want: ErrUnsure},
	} {
		t.Run(c.name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*Config) {}
			}
			check.ErrorIs(t, take(t, open(t, c.bus, change), c.load), c.want)
			check.EqualSlices(t, c.bus.has(), c.fired, "fired")
		})
	}
}

// TestTwice: the same bytes are fired once, whatever became of them the first time.
// TestAllocations: of an event on its way through the queue to the bus, without the plan, which jobcache holds below a
// ceiling of its own.
func TestAllocations(t *testing.T) {
	const ceiling = 15
	s := open(t, &bus{})
	one := func() {
		require.NoError(t, take(t, s, "a"))
	}
	one()
	n := testing.AllocsPerRun(100, one)
	t.Logf("%.0f allocations", n)
	if n > ceiling {
		t.Errorf("%.0f allocations, at most %d", n, ceiling)
	}
}

func TestTwice(t *testing.T) {
	b := &bus{}
	s := open(t, b)
	for range 2 {
		check.NoError(t, take(t, s, "a"))
	}
	b.set(func() { b.stuck = true })
	check.ErrorIs(t, take(t, s, "b"), ErrUnsure)
	b.set(func() { b.stuck = false })
	check.NoError(t, take(t, s, "b")) // it is in the bus's own queue
	b.set(func() { b.down = true })
	check.ErrorIs(t, take(t, s, "c"), ErrPython)
	b.set(func() { b.down = false })
	check.NoError(t, take(t, s, "c")) // of which nothing was fired
	check.EqualSlices(t, b.has(), []string{"a", "b", "c"}, "fired")
}

// TestBusComesBack: what the bus has already queued is waited for, and not fired again.
func TestBusComesBack(t *testing.T) {
	b := &bus{goes: true, gone: make(chan struct{})}
	s := open(t, b, func(c *Config) { c.StallTimeout = 20 * time.Second })
	end := make(chan error, 1)
	s.Take("m1", []byte("a"), time.Now(), func(_ []byte, err error) { end <- err })
	select { // as soon as it has queued the event and gone down
	case <-b.gone:
	case <-time.After(30 * time.Second):
		t.Fatal("the bus was not asked")
	}
	b.set(func() { b.goes, b.down = false, false })
	check.NoError(t, <-end)
	check.EqualSlices(t, b.has(), []string{"a"}, "fired")
}

// TestOrderAndBounds: a minion's events stay in order, and what is too much is left to the master.
func TestOrderAndBounds(t *testing.T) {
	b := &bus{stuck: true}
	s := open(t, b, func(c *Config) { c.StallTimeout = 20 * time.Second; c.Rate, c.Burst = 1<<20, 1<<20 })
	var mu sync.Mutex
	var wg sync.WaitGroup
	ends := map[string]int{}
	var want []string
	for i := range maxWaiting + 600 {
		load := fmt.Sprintf("load %d", i)
		wg.Add(1)
		s.Take("m1", []byte(load), time.Now(), func(_ []byte, err error) {
			defer wg.Done()
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				want = append(want, load)
			}
			ends[fmt.Sprint(err)]++
		})
	}
	b.set(func() { b.stuck = false })
	// The batch that stood still waits for its timeout; closing ends it.
	check.NoError(t, s.Close())
	wg.Wait()
	if got := b.has(); len(got) < len(want) || len(got) > len(want)+batchLoads ||
		!slices.Equal(got[len(got)-len(want):], want) {
		t.Errorf("fired %d in another order, or others, than were answered (%d)", len(got), len(want))
	}
	if ends[ErrPython.Error()] < 600-2*batchLoads {
		t.Errorf("ends %v", ends)
	}
	check.ErrorIs(t, take(t, s, "late"), ErrPython, "after Close")
	if got := s.bytes.Load(); got != 0 {
		t.Errorf("%d bytes are held", got)
	}
}

func TestLargeLoads(t *testing.T) {
	b := &bus{stuck: true}
	s := open(t, b)
	s.bytes.Add(maxBytes - 1)
	check.ErrorIs(t, take(t, s, "ab"), ErrPython, "too much")
	s.bytes.Add(2 - maxBytes)
	if err := take(t, s, "grows"); !errors.Is(err, ErrPython) { // short, and makes much
		t.Errorf("too much of few bytes: %v", err)
	}
	s.bytes.Add(-1)
}

// TestManyEvents: a list takes its time at the pace of the bus, and so do many lists. That is no sign that the bus
// stands still.
func TestManyEvents(t *testing.T) {
	b := &bus{}
	s := open(t, b, func(c *Config) { c.Rate, c.Burst, c.StallTimeout = 1000, 1, 200*time.Millisecond })
	if err := take(t, s, "many"); !errors.Is(err, ErrPython) || len(b.queued)+len(b.has()) > 0 {
		t.Errorf("more than can be fired in time: %v, fired %d", err, len(b.queued)+len(b.has()))
	}
	s, err := New(Config{Bus: b, Rate: 1000, StallTimeout: 200 * time.Millisecond})
	require.NoError(t, err)
	list := func() *waiting { return &waiting{plan: jobcache.Plan{Events: make([]jobcache.Event, 60)}} }
	for range 5 {
		s.queue <- list()
	}
	if got := len(s.gatherBatch(list())); got != 2 {
		t.Errorf("%d lists of 60 events are fired together, which is to be done within 200 ms, 1,000 a second", got)
	}
}

// unasked fails the test when it is asked.
type unasked struct{ t *testing.T }

func (u unasked) Plan([]byte, jobcache.Facts) (jobcache.Plan, error) {
	u.t.Error("planned what has no room in the queue in any case")
	return jobcache.Plan{}, jobcache.ErrMalformed
}

// TestTooLargeIsNotPlanned: a plan may take several times its load, and a load that is larger than everything that may
// wait is the master's.
func TestTooLargeIsNotPlanned(t *testing.T) {
	s := open(t, &bus{}, func(c *Config) { c.Mode.Planner = unasked{t} })
	check.ErrorIs(t, take(t, s, string(make([]byte, maxBytes+1))), ErrPython)
}
