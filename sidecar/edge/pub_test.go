package edge

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/zmtp"
)

// subscribe is a peer subscribed to topics, known to the edge.
func subscribe(t *testing.T, e *PubEdge, topics ...string) *zmtp.Client {
	t.Helper()
	before := e.Stats().Subscribers
	c := dial(t, e, "SUB")
	for _, topic := range topics {
		require.NoError(t, c.Subscribe([]byte(topic)))
	}
	patience.WaitFor(t, "subscribed", func() bool { return e.Stats().Subscribers > before })
	return c
}

// indexed counts the subscribers of exactly this topic.
func indexed(e *PubEdge, topic string) (n int) {
	for _, h := range e.shards {
		h.mu.Lock()
		n += len(h.index.byTopic[topic])
		h.mu.Unlock()
	}
	return n
}

// next wants the next message of a subscriber to be these parts.
func next(t *testing.T, c *zmtp.Client, want ...string) {
	t.Helper()
	parts, err := c.ReadMessage()
	require.NoError(t, err)
	got := make([]string, len(parts))
	for i, p := range parts {
		got[i] = string(p)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %.80q, want %.80q", got, want)
	}
}

func pub(body string, topics ...string) Publication {
	return Publication{Body: []byte(body), Topics: topics}
}

func TestPubToEverybodyInOrder(t *testing.T) {
	e := openPub(t, PubConfig{Registerer: prometheus.NewRegistry(), Shards: 3})
	var subs []*zmtp.Client
	for range 20 {
		subs = append(subs, subscribe(t, e, ""))
	}
	const n = 3000
	go func() {
		for i := range n {
			body := make([]byte, 8+i*37%3000)
			copy(body, fmt.Sprintf("%08d", i))
			e.Publish(Publication{Body: body})
		}
	}()
	var wg sync.WaitGroup
	for _, c := range subs {
		wg.Go(func() {
			for i := range n {
				p, err := c.ReadMessage()
				if err != nil || len(p) != 1 || string(p[0][:8]) != fmt.Sprintf("%08d", i) || len(p[0]) != 8+i*37%3000 {
					t.Errorf("message %d: %.20q, %v", i, p, err)
					return
				}
			}
		})
	}
	wg.Wait()
	patience.WaitFor(t, "all are counted", func() bool { return e.Stats().Delivered == n*20 })
	if st := e.Stats(); st.Cut != 0 || st.Published != n || st.Subscribers != 20 {
		t.Fatalf("%+v", st)
	}
}

func TestPubLargeBodies(t *testing.T) {
	e := openPub(t, PubConfig{})
	c := subscribe(t, e, "")
	for _, size := range []int{0, chunkRoom - 9, chunkRoom, 5 << 20, 1} {
		e.Publish(Publication{Body: make([]byte, size)})
		p, err := c.ReadMessage()
		if err != nil || len(p[0]) != size {
			t.Fatalf("size %d: %v", size, err)
		}
	}
}

func TestPubTopics(t *testing.T) {
	e := openPub(t, PubConfig{Shards: 1})
	all := subscribe(t, e, "")
	bc := subscribe(t, e, "broadcast", "aaaa")
	bb := subscribe(t, e, "broadcast", "bbbb")
	prefix := subscribe(t, e, "bb")
	both := subscribe(t, e, "", "aaaa")
	sync := func() { // what was sent before is subscribed when this is answered
		e.Publish(Publication{Body: []byte("sync"), Topics: []string{"bbbb", "broadcast"}})
		next(t, all, "sync")
		next(t, both, "sync")
	}
	patience.WaitFor(t, "all topics are indexed", func() bool {
		return indexed(e, "aaaa") == 2 && indexed(e, "bbbb") == 1 && indexed(e, "bb") == 1 && indexed(e, broadcast) == 2
	})
	sync()
	next(t, bc, "broadcast", "sync")
	next(t, bb, "bbbb", "sync") // once, though it matches twice
	next(t, prefix, "bbbb", "sync")

	e.Publish(pub("to all"))
	e.Publish(pub("to a", "aaaa"))
	e.Publish(Publication{Body: []byte("only a"), Topics: []string{"aaaa"}, TopicOnly: true})
	e.Publish(pub("end", "broadcast", "bbbb"))
	next(t, all, "to all")
	next(t, all, "to a")
	next(t, all, "end")
	next(t, both, "to all")
	next(t, both, "to a")
	next(t, both, "end")
	next(t, bc, "broadcast", "to all")
	next(t, bc, "aaaa", "to a")
	next(t, bc, "aaaa", "only a")
	next(t, bc, "broadcast", "end")
	next(t, bb, "broadcast", "to all")
	next(t, bb, "broadcast", "end")
	next(t, prefix, "bbbb", "end")
}

// TestPubOldSubscriptions speaks ZMTP 3.0: subscriptions are messages.
func TestPubOldSubscriptions(t *testing.T) {
	e := openPub(t, PubConfig{Heartbeat: time.Hour})
	c := dialRaw(t, e)
	_, _ = c.Write(zmtp.AppendSubscription(zmtp.AppendSubscription(oldHello(), nil, true), []byte("x"), true))
	patience.WaitFor(t, "subscribed", func() bool { return e.Stats().Subscribers == 1 })
	e.Publish(pub("one"))
	want := append(append([]byte(nil), e.hello...), zmtp.AppendMessage(nil, []byte("one"))...)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != string(want) {
		t.Fatalf("%q, %v", got, err)
	}
	_, _ = c.Write(zmtp.AppendSubscription(zmtp.AppendSubscription(nil, []byte("x"), false), nil, false))
	patience.WaitFor(t, "unsubscribed", func() bool { return e.Stats().Subscribers == 0 })
}

// oldHello is hello of a subscriber that speaks ZMTP 3.0.
func oldHello() []byte {
	h := hello("SUB")
	h[11] = 0
	return h
}

// TestPubHeartbeat_OldSubscriber: a subscriber that knows no PING gets a publication that Salt leaves unread, so that
// what stands between does not cut it. It answers nothing, and is not cut here either.
func TestPubHeartbeat_OldSubscriber(t *testing.T) {
	for name, c := range map[string]struct {
		topics []string
		want   []byte
	}{
		"unfiltered": {[]string{"x", ""}, zmtp.AppendMessage(nil, unread)},
		"filtered":   {[]string{"0123abcd", broadcast}, zmtp.AppendMessage(nil, []byte(broadcast), unread)},
	} {
		t.Run(name, func(t *testing.T) {
			e := openPub(t, PubConfig{Heartbeat: 5 * time.Millisecond, HeartbeatTimeout: 10 * time.Millisecond})
			old := dialRaw(t, e)
			say := oldHello()
			for _, topic := range c.topics {
				say = zmtp.AppendSubscription(say, []byte(topic), true)
			}
			_, _ = old.Write(say)
			var got []byte
			for b := make([]byte, 4096); bytes.Count(got, c.want) < 10; {
				n, err := old.Read(b)
				if err != nil {
					t.Fatalf("%v after %q", err, got)
				}
				got = append(got, b[:n]...)
			}
			if bytes.Contains(got, []byte(zmtp.CmdPing)) {
				t.Errorf("a PING in %q", got)
			}
			if st := e.Stats(); st.Cut != 0 || st.Delivered != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestPubHeartbeat_OldSubscriberBlocked: an old subscriber that reads nothing gets one sign of life at a time.
func TestPubHeartbeat_OldSubscriberBlocked(t *testing.T) {
	e := openPub(t, PubConfig{Heartbeat: time.Hour, HeartbeatTimeout: time.Hour})
	c := dialRaw(t, e)
	_, _ = c.Write(zmtp.AppendSubscription(oldHello(), []byte(broadcast), true))
	patience.WaitFor(t, "subscribed", func() bool { return e.Stats().Subscribers == 1 })
	s := e.conns.All()[0]
	waiting := func(blocked bool) int { // blocked is set by hand: when a socket is full is the kernel's choice
		s.Mu.Lock()
		s.blocked = blocked
		s.Mu.Unlock()
		s.shard.checkOutput(s, netconn.Clock(), s.shard.signOfLife(s))
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return len(s.q.segs)
	}
	for range 20 {
		if n := waiting(true); n != 0 {
			t.Fatalf("%d wait for a full socket", n)
		}
	}
	waiting(false)
	var got []byte
	for want := zmtp.AppendMessage(nil, []byte(broadcast), unread); !bytes.HasSuffix(got, want); {
		b := make([]byte, 4096)
		n, err := c.Read(b)
		if err != nil {
			t.Fatalf("%v instead of a sign of life", err)
		}
		got = append(got, b[:n]...)
	}
}

// TestPubSubscribe_Unmatched changes what a subscriber hears when the worker has not come to the last publication: it is
// given that once.
func TestPubSubscribe_Unmatched(t *testing.T) {
	e := openPub(t, PubConfig{Shards: 1})
	c := subscribe(t, e, broadcast)
	s := e.conns.All()[0]
	for i, change := range []func(){
		func() { s.shard.subscribe(s, "") }, func() { s.shard.cancel(s, "") }, func() {},
	} {
		publishUnmatched(e, pub(fmt.Sprint(i)))
		change()
	}
	e.Publish(pub("3"))
	expect(t, c, "0", "1", "2", "3")
}

func TestPubCancel(t *testing.T) {
	e := openPub(t, PubConfig{})
	c := dialRaw(t, e)
	b := zmtp.AppendSubscribe(zmtp.AppendSubscribe(hello("SUB"), nil), nil)
	_, _ = c.Write(zmtp.AppendSubscribe(b, []byte("t")))
	patience.WaitFor(t, "subscribed", func() bool { return e.Stats().Subscribers == 1 })
	_, _ = c.Write(zmtp.AppendCancel(zmtp.AppendCancel(nil, nil), []byte("t")))
	e.Publish(pub("still subscribed once"))
	patience.WaitFor(t, "delivered", func() bool { return e.Stats().Delivered == 1 })
	_, _ = c.Write(zmtp.AppendCancel(zmtp.AppendCancel(nil, []byte("unknown")), nil))
	patience.WaitFor(t, "unsubscribed", func() bool { return e.Stats().Subscribers == 0 })
	e.Publish(pub("nobody"))
	other := subscribe(t, e, "")
	e.Publish(pub("two"))
	next(t, other, "two")
	patience.WaitFor(t, "counted", func() bool { return e.Stats().Delivered >= 2 })
	if d := e.Stats().Delivered; d != 2 {
		t.Fatalf("%d deliveries", d)
	}
}

func TestPubHeartbeat(t *testing.T) {
	e := openPub(t, PubConfig{Heartbeat: 20 * time.Millisecond, HeartbeatTimeout: 200 * time.Millisecond})
	alive := subscribe(t, e, "")
	heard := make(chan error, 1)
	go func() { _, err := alive.ReadMessage(); heard <- err }()
	silent := dialRaw(t, e)
	_, _ = silent.Write(zmtp.AppendSubscribe(hello("SUB"), nil))
	ended(t, silent)
	patience.WaitFor(t, "counted", func() bool { return reasonCount(e.metrics, netconn.ReasonSilent) == 1 && e.Stats().Cut == 1 })
	e.Publish(pub("x"))
	require.NoError(t, <-heard)
}

func TestPubSubscriptionLimits(t *testing.T) {
	e := openPub(t, PubConfig{MaxSubscriptions: 3, MaxTopic: 8})
	many := hello("SUB")
	for i := range 4 {
		many = zmtp.AppendSubscribe(many, []byte(fmt.Sprint(i)))
	}
	long := zmtp.AppendSubscribe(hello("SUB"), make([]byte, 9))
	early := zmtp.AppendSubscribe(zmtp.AppendGreeting(nil), nil)
	for name, say := range map[string][]byte{"many": many, "long": long, "early": early} {
		c := dialRaw(t, e)
		_, _ = c.Write(say)
		ended(t, c)
		patience.WaitFor(t, name+" is forgotten", func() bool { s := e.Stats(); return s.Conns == 0 && s.Subscribers == 0 })
	}
}

// flood publishes to a stalled subscriber and a good one, until the stalled
// one is cut.
func flood(t *testing.T, e *PubEdge, topics ...string) {
	t.Helper()
	good := subscribe(t, e, topics...)
	stalled := dialRaw(t, e)
	_ = stalled.(*net.TCPConn).SetReadBuffer(4096)
	b := hello("SUB")
	for _, topic := range topics {
		b = zmtp.AppendSubscribe(b, []byte(topic))
	}
	_, _ = stalled.Write(b)
	patience.WaitFor(t, "both are subscribed", func() bool { return e.Stats().Subscribers == 2 })
	deadline := time.Now().Add(testTimeout)
	n := 0
	for ; e.Stats().Cut == 0; n++ {
		body := make([]byte, 60<<10)
		copy(body, fmt.Sprintf("%08d", n))
		e.Publish(Publication{Body: body})
		p, err := good.ReadMessage()
		if err != nil || string(p[len(p)-1][:8]) != fmt.Sprintf("%08d", n) {
			t.Fatalf("message %d: %v", n, err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the stalled subscriber was never cut")
		}
	}
	patience.WaitFor(t, "it is gone", func() bool { s := e.Stats(); return s.Conns == 1 && s.Blocked == 0 })
	if reasonCount(e.metrics, netconn.ReasonSlow) != 1 {
		t.Fatal("cut for another reason")
	}
}

func TestPubCutsStalled(t *testing.T) {
	for name, cfg := range map[string]PubConfig{
		"messages": {QueueMessages: 20},
		"bytes":    {QueueBytes: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			flood(t, openPub(t, cfg), "")
		})
		t.Run(name+" filtered", func(t *testing.T) {
			flood(t, openPub(t, cfg), broadcast)
		})
	}
}

// TestPubCutsStalledInTime cuts by time when nothing more is published.
func TestPubCutsStalledInTime(t *testing.T) {
	e := openPub(t, PubConfig{Heartbeat: time.Hour, HeartbeatTimeout: 100 * time.Millisecond})
	c := dialRaw(t, e)
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	_, _ = c.Write(zmtp.AppendSubscribe(hello("SUB"), nil))
	patience.WaitFor(t, "subscribed", func() bool { return e.Stats().Subscribers == 1 })
	for e.Stats().Blocked == 0 {
		e.Publish(Publication{Body: make([]byte, 1<<20)})
	}
	patience.WaitFor(t, "cut", func() bool { return reasonCount(e.metrics, netconn.ReasonStalled) == 1 && e.Stats().Conns == 0 })
}

// TestPubSlowSubscriberCatchesUp reads late, but within the bounds.
func TestPubSlowSubscriberCatchesUp(t *testing.T) {
	for name, topic := range map[string]string{"unfiltered": "", "filtered": broadcast} {
		t.Run(name, func(t *testing.T) {
			e := openPub(t, PubConfig{Heartbeat: 20 * time.Millisecond, HeartbeatTimeout: time.Hour})
			c := subscribe(t, e, topic)
			const n, size = 400, 100 << 10
			for i := range n {
				body := make([]byte, size)
				copy(body, fmt.Sprintf("%08d", i))
				e.Publish(Publication{Body: body})
			}
			patience.WaitFor(t, "its socket is full", func() bool { return e.Stats().Blocked == 1 })
			for i := range n {
				p, err := c.ReadMessage()
				if err != nil || string(p[len(p)-1][:8]) != fmt.Sprintf("%08d", i) {
					t.Fatalf("message %d: %v", i, err)
				}
			}
			e.Publish(pub("after"))
			p, err := c.ReadMessage()
			if err != nil || string(p[len(p)-1]) != "after" {
				t.Fatal(err)
			}
		})
	}
}

func TestPubDrain(t *testing.T) {
	e := openPub(t, PubConfig{})
	var conns []*zmtp.Client
	for range 10 {
		conns = append(conns, subscribe(t, e, ""))
	}
	e.Publish(pub("last"))
	e.Drain(context.Background(), 50*time.Millisecond)
	for _, c := range conns {
		next(t, c, "last")
		if _, err := c.ReadMessage(); err == nil {
			t.Fatal("still open")
		}
	}
	patience.WaitFor(t, "ten are counted", func() bool { return reasonCount(e.metrics, netconn.ReasonDrained) == 10 })
}

func TestPubAfterClose(t *testing.T) {
	e := openPub(t, PubConfig{})
	c := subscribe(t, e, "")
	require.NoError(t, e.Close())
	if _, err := c.ReadMessage(); err == nil {
		t.Fatal("still open")
	}
	e.Publish(pub("nobody"))
	e.Rotate(Rotation{Window: time.Second})
}

// A daemon publishes while its port is still taken, and may be stopped then.
func TestPubBeforeOpen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e, err := NewPubEdge(PubConfig{Addrs: []string{"127.0.0.1:0", taken.Addr().String()}, QueueMessages: 4})
	require.NoError(t, err)
	for range 100 {
		if err := e.Open(context.Background()); err == nil {
			t.Fatal("opened a port that is taken")
		}
		e.Publish(pub("nobody")) // nobody's worker will make room
	}
	e.Rotate(Rotation{})
	e.Drain(context.Background(), time.Second)
	require.NoError(t, e.Close())
	require.NoError(t, taken.Close())
	require.NoError(t, e.Open(context.Background()))
	defer e.Close()
	if n := len(e.Addr()); n != 2 {
		t.Fatalf("%d addresses", n)
	}
}

// What a subscriber says goes to nobody, whatever it looks like: another one hears what was published, and nothing
// before it. Who says a message that is no subscription, or is no subscriber, is cut off, which is counted.
func TestPub_SubscriberCannotPublish(t *testing.T) {
	e := openPub(t, PubConfig{})
	other := subscribe(t, e, "")
	cut := 0
	for name, say := range map[string][]byte{
		"a publication":               zmtp.AppendMessage(nil, []byte("forged")),
		"one with a topic":            zmtp.AppendMessage(nil, []byte("topic"), []byte("forged")),
		"behind a subscription":       zmtp.AppendMessage(zmtp.AppendSubscription(nil, nil, true), []byte("forged")),
		"as of a publisher below us":  zmtp.AppendMessage(zmtp.AppendMessage(nil, []byte{1}), []byte("\x02forged")),
		"a command that is not known": zmtp.AppendCommand(nil, "PUBLISH", []byte("forged")),
	} {
		for _, kind := range []string{"SUB", "XSUB", "PUB", "XPUB", "DEALER"} {
			c := dialRaw(t, e)
			_, _ = c.Write(zmtp.AppendPing(append(hello(kind), say...), time.Second, []byte("seen")))
			for buf, heard := make([]byte, 1<<10), ""; !strings.Contains(heard, "seen"); { // until it was read, or was too much
				n, err := c.Read(buf)
				if heard += string(buf[:n]); err != nil {
					break
				}
			}
			if name != "a command that is not known" || !strings.HasSuffix(kind, "SUB") {
				ended(t, c)
				cut++
			}
			c.Close()
			e.Publish(pub(name + " of " + kind))
			next(t, other, name+" of "+kind)
		}
	}
	patience.WaitFor(t, "the cut ones to be counted",
		func() bool { return metricValue(e.metrics.Endings(netconn.ReasonProtocol)) == float64(cut) })
}
