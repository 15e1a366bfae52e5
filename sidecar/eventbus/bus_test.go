package eventbus

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
)

// fakeBus is a master's pair of event sockets: what is fired comes back to every subscriber.
type fakeBus struct {
	t       *testing.T
	framing framing // in which it publishes
	takes   framing
	ln      [2]net.Listener
	wg      sync.WaitGroup
	mu      sync.Mutex
	conns   []net.Conn
	subs    []net.Conn
	stopped bool // what connects after that is closed at once
}

func startFakeBus(t *testing.T, dir string, f framing) *fakeBus {
	return startFakeBusTaking(t, dir, f, prefixed)
}

func startFakeBusTaking(t *testing.T, dir string, f, takes framing) *fakeBus {
	b := &fakeBus{t: t, framing: f, takes: takes}
	for i, name := range []string{"master_event_pub.ipc", "master_event_pull.ipc"} {
		var err error
		if b.ln[i], err = net.Listen("unix", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		b.wg.Go(func() { b.accept(i) })
	}
	t.Cleanup(b.stop)
	return b
}

func (b *fakeBus) accept(i int) {
	for {
		c, err := b.ln[i].Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		if b.stopped {
			b.mu.Unlock()
			_ = c.Close()
			return
		}
		if b.conns = append(b.conns, c); i == 0 {
			b.subs = append(b.subs, c)
		}
		b.mu.Unlock()
		if i == 1 {
			b.wg.Go(func() { b.pull(c) })
		}
	}
}

func (b *fakeBus) pull(c net.Conn) {
	for r := (frameReader{framing: b.takes, limit: 1 << 20}); ; {
		body, err := r.nextFrame()
		if err != nil {
			b.t.Errorf("a master that takes framing %d: %v", b.takes, err)
			return
		}
		if body == nil {
			if r.fillBuffer(c) != nil {
				return
			}
			continue
		}
		tag, data, err := splitEvent(body)
		if err != nil {
			b.t.Error(err)
			return
		}
		text := appendFrame(nil, b.framing, tag, data)
		b.mu.Lock()
		for _, s := range b.subs {
			_, _ = s.Write(text)
		}
		b.mu.Unlock()
	}
}

// subscribers are those of the fake that are connected, or were.
func (b *fakeBus) subscribers() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.subs)
}

func (b *fakeBus) stop() {
	for _, l := range b.ln {
		l.Close()
	}
	b.mu.Lock()
	for _, c := range b.conns {
		c.Close()
	}
	b.conns, b.subs, b.stopped = nil, nil, true
	b.mu.Unlock()
	b.wg.Wait()
}

// busRig is a Bus whose sockets are in a short directory.
func busRig(t *testing.T, o Options) (*Bus, string) {
	dir, err := os.MkdirTemp("", "bus")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg := busMaster(t, 3007, "x")
	cfg.SockDir, cfg.IPCMode = dir, "ipc"
	return New(cfg, o), dir
}

func TestBusThroughRestarts(t *testing.T) {
	for _, f := range []framing{prefixed, bare} {
		b, dir := busRig(t, Options{BackoffMax: 10 * time.Millisecond})
		got := make(chan string, 1000)
		b.Subscribe(func(tag string, data []byte) {
			m, _, err := msgp.ReadMapStrIntfBytes(data, nil)
			if err != nil || m["_stamp"] == nil {
				t.Errorf("event %s: %v, %v", tag, m, err)
			}
			got <- tag
		})
		require.NoError(t, b.Open(context.Background()))
		for round := range 3 {
			fake := startFakeBus(t, dir, f)
			patience.WaitFor(t, "the bus", b.Up)
			patience.WaitFor(t, "the bus", func() bool { return fake.subscribers() == 1 })
			for i := range 50 {
				require.NoError(t, b.Fire(context.Background(), "r"+strconv.Itoa(round)+"/"+strconv.Itoa(i),
					map[string]any{"n": i}))
			}
			for i := range 50 {
				want := "r" + strconv.Itoa(round) + "/" + strconv.Itoa(i)
				select {
				case tag := <-got:
					if tag != want {
						t.Fatalf("got %s, want %s", tag, want)
					}
				case <-time.After(10 * time.Second):
					t.Fatalf("%s did not come", want)
				}
			}
			fake.stop()
			patience.WaitFor(t, "the bus", func() bool { return !b.Up() })
		}
		require.NoError(t, b.Close())
	}
}

// A master's bus is there before those who listen to it. What is fired meanwhile waits until its workers answer.
func TestBus_WaitForServing(t *testing.T) {
	serving := make(chan struct{})
	b, dir := busRig(t, Options{BackoffMax: 10 * time.Millisecond, Serving: func(ctx context.Context) {
		select {
		case <-serving:
		case <-ctx.Done():
		}
	}})
	got := make(chan string, 10)
	b.Subscribe(func(tag string, _ []byte) { got <- tag })
	fake := startFakeBus(t, dir, prefixed)
	require.NoError(t, b.Open(t.Context()))
	fire := func(tag string) {
		t.Helper()
		require.NoError(t, b.Fire(t.Context(), tag, nil))
	}
	heard := func(fake *fakeBus, tag string) {
		t.Helper()
		patience.WaitFor(t, "the bus", func() bool { return fake.subscribers() == 1 })
		select {
		case have := <-got:
			if have != tag {
				t.Fatalf("heard %s, not %s", have, tag)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s did not come", tag)
		}
	}
	patience.WaitFor(t, "the bus", func() bool { return b.Up() && fake.subscribers() == 1 })
	fire("there all along")
	heard(fake, "there all along")
	for _, when := range []string{"while it is away", "when it is back"} {
		fake.stop()
		patience.WaitFor(t, "the bus", func() bool { return !b.Up() })
		if when == "while it is away" {
			fire(when)
			patience.WaitFor(t, "the bus", func() bool { return !b.Takes() })
		}
		fake = startFakeBus(t, dir, prefixed)
		patience.WaitFor(t, "the bus", b.Up)
		if when == "when it is back" {
			fire(when)
			patience.WaitFor(t, "the bus", func() bool { return !b.Takes() })
		}
		for range 50 {
			if b.Takes() || len(got) > 0 {
				t.Fatalf("what was fired %s is taken before the master serves", when)
			}
			time.Sleep(time.Millisecond)
		}
		serving <- struct{}{}
		patience.WaitFor(t, "the bus", b.Takes)
		heard(fake, when)
	}
	fake.stop()
	fire("left")
	patience.WaitFor(t, "the bus", func() bool { return !b.Takes() })
	startFakeBus(t, dir, prefixed)
	patience.WaitFor(t, "the bus", b.Up)
	require.NoError(t, b.Close()) // waits for no master
}

func TestBusBoundsAndClose(t *testing.T) {
	b, _ := busRig(t, Options{QueueEvents: 3, QueueBytes: 1000, BackoffMin: time.Hour})
	ctx := context.Background()
	check.ErrorIs(t, b.Fire(ctx, "a", nil), ErrBusClosed, "before Open")
	require.NoError(t, b.Open(ctx))
	var err error
	for range 10 {
		if err = b.Fire(ctx, "a", map[string]any{"x": make([]byte, 100)}); err != nil {
			break
		}
	}
	check.ErrorIs(t, err, ErrBusFull, "a master that is down")
	for range 2 { // one alone is taken, and the bus may just have emptied its queue to try
		err = b.FireRaw(ctx, "b", make([]byte, 5000))
	}
	check.ErrorIs(t, err, ErrBusFull, "beyond the bytes")
	for _, tag := range []string{"", "a\n\nb", "a\n"} {
		check.ErrorIs(t, b.Fire(ctx, tag, nil), ErrTag, "tag", tag)
	}
	require.NoError(t, b.Close())
	check.ErrorIs(t, b.Fire(ctx, "a", nil), ErrBusClosed, "after Close")
}

func TestBusUnsubscribe(t *testing.T) {
	b, dir := busRig(t, Options{})
	fake := startFakeBus(t, dir, prefixed)
	one, two := make(chan string, 10), make(chan string, 10)
	cancel := b.Subscribe(func(tag string, _ []byte) { one <- tag })
	b.Subscribe(func(tag string, _ []byte) { two <- tag })
	cancel()
	require.NoError(t, b.Open(context.Background()))
	defer b.Close()
	patience.WaitFor(t, "the bus", func() bool { return fake.subscribers() == 1 })
	require.NoError(t, b.Fire(context.Background(), "t", nil))
	if tag := <-two; tag != "t" || len(one) != 0 {
		t.Errorf("got %s, and %d at the one that left", tag, len(one))
	}
}

func TestBusFlush(t *testing.T) {
	b, dir := busRig(t, Options{FireOnly: true})
	ctx := context.Background()
	require.NoError(t, b.Open(ctx))
	defer b.Close()
	if b.Takes() {
		t.Error("nobody is there, and yet it takes events")
	}
	require.NoError(t, b.FireTrimmed(ctx, "t", []byte("\x80")))
	check.ErrorIs(t, b.Flush(ctx), ErrBusDown, "flush without a master")
	startFakeBus(t, dir, prefixed)
	patience.WaitFor(t, "the bus", func() bool { return b.Takes() && b.Flush(ctx) == nil })
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := b.Flush(ended); err != nil { // nothing waits
		t.Errorf("flush of nothing: %v", err)
	}
}

// TestBus_EventLargerThanQueue: an event larger than the queue is taken alone. If it were refused for ever, a caller
// that fires in order would get no further.
func TestBus_EventLargerThanQueue(t *testing.T) {
	b, dir := busRig(t, Options{FireOnly: true, QueueBytes: 1000})
	ctx := context.Background()
	require.NoError(t, b.Open(ctx))
	defer b.Close()
	startFakeBus(t, dir, prefixed)
	for _, tag := range []string{"a", "b"} {
		patience.WaitFor(t, "the bus", func() bool { return b.FireTrimmed(ctx, tag, make([]byte, 5000)) == nil })
	}
	patience.WaitFor(t, "the bus", func() bool { return b.Flush(ctx) == nil })
}

// TestBusLingers: the event of a sign-in would wait for hours here, unless something else does not.
func TestBusLingers(t *testing.T) {
	auth := AuthEvent{Result: true, Act: "accept", ID: "m1", Pub: "key"}
	big := AuthEvent{Result: true, Act: "accept", ID: "m2", Pub: string(make([]byte, busBatch))}
	for name, c := range map[string]struct {
		end  func(*Bus) error
		want []string
	}{
		"another event": {func(b *Bus) error { return b.FireTrimmed(t.Context(), "t", []byte("\x80")) },
			[]string{authTag, authTag, "t"}},
		"a flush":    {func(b *Bus) error { return b.Flush(t.Context()) }, []string{authTag, authTag}},
		"many bytes": {func(b *Bus) error { return b.FireAuth(t.Context(), big) }, []string{authTag, authTag, authTag}},
		"its end":    {(*Bus).Close, []string{authTag, authTag}},
	} {
		t.Run(name, func(t *testing.T) {
			b, dir := busRig(t, Options{FireOnly: true, Linger: time.Hour})
			master := startFakeBus(t, dir, prefixed)
			reader, err := net.Dial("unix", b.pub.address)
			require.NoError(t, err)
			defer reader.Close()
			require.NoError(t, reader.SetDeadline(time.Now().Add(10*time.Second)))
			patience.WaitFor(t, "the bus", func() bool { return master.subscribers() == 1 })
			require.NoError(t, b.Open(t.Context()))
			defer b.Close()
			for range 2 {
				require.NoError(t, b.FireAuth(t.Context(), auth))
			}
			require.NoError(t, c.end(b))
			got := tags(t, reader, len(c.want))
			check.EqualSlices(t, got, c.want)
			if n := b.urgent.Load(); n != 0 {
				t.Errorf("%d are urgent and gone", n)
			}
		})
	}
}

// tags reads so many events and returns theirs.
func tags(t *testing.T, reader io.Reader, n int) (got []string) {
	t.Helper()
	for r := (frameReader{limit: 1 << 20}); len(got) < n; {
		body, err := r.nextFrame()
		require.NoError(t, err)
		if body == nil {
			require.NoError(t, r.fillBuffer(reader))
			continue
		}
		tag, _, err := splitEvent(body)
		require.NoError(t, err)
		got = append(got, tag)
	}
	return got
}

// TestBusKeepsOrder: of what one who fires fires, whether it may wait or not.
func TestBusKeepsOrder(t *testing.T) {
	const producers, each = 4, 500
	b, dir := busRig(t, Options{FireOnly: true, Linger: time.Millisecond})
	master := startFakeBus(t, dir, prefixed)
	reader, err := net.Dial("unix", b.pub.address)
	require.NoError(t, err)
	defer reader.Close()
	require.NoError(t, reader.SetDeadline(time.Now().Add(30*time.Second)))
	patience.WaitFor(t, "the bus", func() bool { return master.subscribers() == 1 })
	require.NoError(t, b.Open(t.Context()))
	defer b.Close()
	var fired sync.WaitGroup
	for p := range producers {
		fired.Go(func() {
			for n := range each {
				e := queuedEvent{tag: fmt.Sprintf("%d/%d", p, n), data: []byte("\x80"), lazy: (n+p)%3 > 0}
				check.NoError(t, b.enqueueEvent(t.Context(), e))
			}
		})
	}
	var next [producers]int
	for _, tag := range tags(t, reader, producers*each) {
		var p, n int
		if _, err := fmt.Sscanf(tag, "%d/%d", &p, &n); err != nil || n != next[p] {
			t.Fatalf("%s, want %d (%v)", tag, next[p], err)
		}
		next[p]++
	}
	fired.Wait()
}

// TestLingerAfter: the event of a single sign-in is fired soon, also some time after a storm.
func TestLingerAfter(t *testing.T) {
	const soon, long = busLinger, busLingerTimes * busLinger
	for _, c := range []struct {
		written   int
		ago, want time.Duration
	}{
		{0, 0, soon}, {1, 0, soon}, {busCrowd - 1, 0, soon}, {busCrowd, 0, long}, {500, busLinger, long},
		{500, busLinger + 1, soon}, {0, time.Hour, soon},
	} {
		check.Equal(t, lingerAfter(busLinger, c.written, c.ago), c.want, "after", c.written, "events", c.ago, "ago")
	}
}

// TestBusLingerEnds: nothing else comes, and the event is fired all the same.
func TestBusLingerEnds(t *testing.T) {
	b, dir := busRig(t, Options{FireOnly: true, Linger: time.Millisecond})
	startFakeBus(t, dir, prefixed)
	require.NoError(t, b.Open(t.Context()))
	defer b.Close()
	require.NoError(t, b.FireAuth(t.Context(), AuthEvent{ID: "m1"}))
	patience.WaitFor(t, "the bus", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.flow.sent == 1 })
}

// TestBusOfAnotherRelease: what waits while another release takes a master's place arrives there, framed as that one
// takes it. What Serving learns counts, what it asked a master that has gone again does not.
func TestBusOfAnotherRelease(t *testing.T) {
	ctx := t.Context()
	releases := make(chan string)
	var b *Bus
	serving := func(ctx context.Context) {
		select {
		case text := <-releases:
			if text == "" { // it could not be asked
				return
			}
			v, err := localmaster.ParseVersion(text)
			check.NoError(t, err)
			b.Serves(v)
		case <-ctx.Done():
		}
	}
	b, dir := busRig(t, Options{FireOnly: true, Serving: serving, BackoffMax: 10 * time.Millisecond})
	require.NoError(t, b.Open(ctx))
	defer b.Close()
	n := 0
	fire := func() {
		t.Helper()
		for range 20 { // more than one batch
			require.NoError(t, b.FireTrimmed(ctx, strconv.Itoa(n), make([]byte, 20_000)))
			n++
		}
	}
	for _, step := range []struct {
		release string
		takes   framing
	}{
		{"3006.28", prefixed}, {"3006.16", bare}, {"3007.8", bare}, {"", bare}, {"3007.15", prefixed}, {"3008.1", bare},
		{"3008.3", prefixed},
	} {
		first := n
		fire()
		patience.WaitFor(t, "the bus", func() bool { return !b.Takes() })
		fake := startFakeBusTaking(t, dir, bare, step.takes)
		reader, err := net.Dial("unix", b.pub.address)
		if err == nil {
			err = reader.SetDeadline(time.Now().Add(10 * time.Second))
		}
		require.NoError(t, err)
		defer reader.Close()
		patience.WaitFor(t, "the bus", func() bool { return fake.subscribers() == 1 })
		releases <- step.release
		fire()
		for i, tag := range tags(t, reader, n-first) {
			if want := strconv.Itoa(first + i); tag != want {
				t.Fatalf("%s heard %s, want %s", step.release, tag, want)
			}
		}
		fake.stop()
	}
}

// TestBus_MasterGoneBeforeServing: a master ends before its workers have answered. The answer does not count for the
// next master.
func TestBus_MasterGoneBeforeServing(t *testing.T) {
	begun, serving := make(chan struct{}), make(chan struct{})
	b, dir := busRig(t, Options{FireOnly: true, BackoffMax: 10 * time.Millisecond, Serving: func(ctx context.Context) {
		for _, c := range []chan struct{}{begun, serving} {
			select {
			case c <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}})
	require.NoError(t, b.Open(t.Context()))
	defer b.Close()
	patience.WaitFor(t, "the bus", func() bool { return !b.Takes() })
	fake := startFakeBus(t, dir, prefixed)
	patience.WaitFor(t, "the bus", func() bool { return !b.Takes() })
	<-begun
	fake.stop()
	patience.WaitFor(t, "the bus", func() bool { return !b.Takes() })
	startFakeBus(t, dir, prefixed)
	<-serving
	patience.WaitFor(t, "the bus", func() bool { // the other one is asked in turn
		if b.Takes() {
			t.Fatal("it takes events, and nobody knows what it is")
		}
		select {
		case <-begun:
			return true
		default:
			return false
		}
	})
	<-serving
	patience.WaitFor(t, "the bus", b.Takes)
}
