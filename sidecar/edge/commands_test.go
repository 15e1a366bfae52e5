package edge

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"saltclusterd/integration/patience"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/saltwire/wsframe"
	"saltclusterd/sidecar/zmtp"
)

// TestHostileCommands says things that cost the edge more than they cost the peer, over and over.
func TestHostileCommands(t *testing.T) {
	pub := openPub(t, PubConfig{HeartbeatTimeout: testTimeout})
	req := openReq(t, ReqConfig{}, echo)
	subscribed := zmtp.AppendSubscribe(hello("SUB"), nil)
	for _, c := range []struct {
		name    string
		edge    addressed
		metrics *metrics
		open    []byte // nil: a WebSocket
		again   []byte
	}{
		{"subscribe and cancel", pub, pub.metrics, subscribed, zmtp.AppendSubscribe(zmtp.AppendCancel(nil, nil), nil)},
		{"subscribe to a topic", pub, pub.metrics, subscribed, zmtp.AppendSubscribe(nil, []byte("broadcast"))},
		{"cancel what was never there", pub, pub.metrics, subscribed, zmtp.AppendCancel(nil, []byte("x"))},
		{"commands at 4505", pub, pub.metrics, subscribed, zmtp.AppendPing(nil, 0, nil)},
		{"commands at 4506", req, req.metrics, hello("REQ"), zmtp.AppendPing(nil, 0, nil)},
		{"pings of a WebSocket at 4505", pub, pub.metrics, nil, maskedPing()},
		{"pings of a WebSocket at 4506", req, req.metrics, nil, maskedPing()},
		{"pongs of a WebSocket at 4505", pub, pub.metrics, nil, wsFrame(ws.OpPong, true, nil)},
		{"pongs of a WebSocket at 4506", req, req.metrics, nil, wsFrame(ws.OpPong, true, nil)},
		{"a message in little pieces at 4506", req, req.metrics, nil, wsFrame(ws.OpContinuation, false, []byte("x"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := reasonCount(c.metrics, netconn.ReasonCommands)
			conn := dialRaw(t, c.edge)
			if c.open != nil {
				_, _ = conn.Write(c.open)
			} else if _, err := shakeWS(conn); err != nil {
				t.Fatal(err)
			} else if c.again[0] == byte(ws.OpContinuation) {
				_, _ = conn.Write(wsFrame(ws.OpBinary, false, nil))
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			said := 0
			var err error
			for err == nil {
				_, err = conn.Write(c.again)
				said++
			}
			if e, ok := err.(net.Error); ok && e.Timeout() {
				t.Fatalf("not cut after %d times", said)
			}
			patience.WaitFor(t, "cut for its commands", func() bool {
				return reasonCount(c.metrics, netconn.ReasonCommands) == before+1
			})
			if said < commandBurst/2 {
				t.Errorf("cut after %d times", said)
			}
		})
	}
	ask(t, dial(t, req, "REQ"), "undisturbed")
}

// maskedPing is a PING of a client.
func maskedPing() []byte {
	b := wsframe.AppendPing(nil)
	return append([]byte{b[0], b[1] | 0x80, 0, 0, 0, 0}, b[2:]...)
}

// TestCommandCount_Sparing wants a peer that says little to be left alone for ever.
func TestCommandCount_Sparing(t *testing.T) {
	var c commandCount
	now := int64(1)
	for range 100 * commandBurst {
		if now += int64(time.Second) / commandRate; !c.allow(now) {
			t.Fatal("cut")
		}
	}
	for range commandBurst - 1 {
		if !c.allow(now) {
			t.Fatal("no burst")
		}
	}
	if c.allow(now) {
		t.Error("more than a burst")
	}
}

// TestOutqLeavesAndFollows wants a subscriber that goes and comes to keep nothing of that.
func TestOutqLeavesAndFollows(t *testing.T) {
	var q outq
	f := newFeed(0, &encodings[ZeroMQ], 1000, 1<<30)
	f.append([]byte("before"))
	for range 3 {
		q.follow(f)
		for range 100 {
			q.leave(f)
			q.follow(f)
		}
		if len(q.segs) != 1 {
			t.Fatalf("%d segs", len(q.segs))
		}
		q.leave(f)
		if len(q.segs) != 0 {
			t.Fatalf("%d segs are left", len(q.segs))
		}
	}
	q.follow(f)
	f.append([]byte("message"))
	q.leave(f)
	q.follow(f)
	q.leave(f)
	q.follow(f)
	if len(q.segs) != 1 || q.size() == 0 {
		t.Errorf("%d segs, %d bytes", len(q.segs), q.size())
	}
}

// TestWhoReadsLittleKeepsNoMemory has subscribers that keep one old publication in their queue and read what keeps them
// alive. What was published since must not stay in memory for them.
func TestWhoReadsLittleKeepsNoMemory(t *testing.T) {
	for name, c := range map[string]struct {
		topic string
		then  []byte
	}{
		"unsubscribed":      {then: zmtp.AppendCancel(nil, nil)},
		"another's filter":  {topic: "rare"},
		"everything, still": {},
	} {
		t.Run(name, func(t *testing.T) {
			e := openPub(t, PubConfig{QueueMessages: 50, Heartbeat: testTimeout, HeartbeatTimeout: testTimeout})
			conn := dialRaw(t, e)
			_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			_, _ = conn.Write(zmtp.AppendSubscribe(hello("SUB"), []byte(c.topic)))
			patience.WaitFor(t, "subscribed", func() bool { return e.Stats().Subscribers == 1 })
			topics := []string{broadcast}
			if c.topic != "" {
				topics = []string{c.topic}
			}
			for e.Stats().Blocked == 0 {
				e.Publish(Publication{Body: make([]byte, 1<<20), Topics: topics})
				patience.WaitFor(t, "walked", func() bool { return e.shards[0].doneSeq.Load() == e.Stats().Published || e.Stats().Blocked > 0 })
			}
			_, _ = conn.Write(c.then)
			if c.then != nil {
				patience.WaitFor(t, "unsubscribed", func() bool { return e.Stats().Subscribers == 0 })
			}
			for range 200 {
				e.Publish(Publication{Body: []byte("news")})
			}
			patience.WaitFor(t, "cut for being behind", func() bool { return reasonCount(e.metrics, netconn.ReasonSlow) == 1 })
		})
	}
}
