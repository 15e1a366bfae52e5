package edge

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/zmtp"
)

// heardFrame is a thing in the byte stream of a subscriber.
type heardFrame struct {
	kind zmtp.Kind
	body string
	more bool
}

// listen decodes a byte stream as a subscriber would.
type listen struct {
	dec zmtp.Decoder
	got []heardFrame
}

func newListen() *listen {
	l := zmtp.Limits{MaxFrame: 16 << 20}.WithDefaults()
	d := &listen{dec: zmtp.NewDecoder(&l)}
	_, _, _ = d.dec.Next(zmtp.AppendGreeting(nil))
	d.dec.SetReady()
	return d
}

func (l *listen) take(t *testing.T, b []byte) {
	t.Helper()
	for len(b) > 0 {
		ev, n, err := l.dec.Next(b)
		require.NoError(t, err, "torn stream")
		b = b[n:]
		if ev.Kind != zmtp.None {
			body := string(ev.Body)
			if len(body) > 12 {
				body = body[:12]
			}
			l.got = append(l.got, heardFrame{ev.Kind, body, ev.More})
		}
	}
}

// drain writes a random number of bytes of what the queue has, as a socket
// with random room would take it.
func drain(t *testing.T, q *outq, l *listen, rnd *rand.Rand, all bool) (messages int) {
	for {
		iov := q.gather(make([][]byte, 0, 1+rnd.IntN(4)))
		var flat []byte
		for _, b := range iov {
			flat = append(flat, b...)
		}
		if len(flat) == 0 {
			return messages
		}
		n := 1 + rnd.IntN(len(flat))
		l.take(t, flat[:n])
		messages += q.advance(n)
		if !all {
			return messages
		}
	}
}

// TestOutqKeepsOrder drives a queue at random through publishing, partial
// writes, commands between messages and moves to new feeds, and wants every
// publication once, in order, whole.
func TestOutqKeepsOrder(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var q outq
		f := newFeed(0, &encodings[ZeroMQ], 1000, 1<<30)
		q.follow(f)
		l := newListen()
		var want []string
		pings, counted := 0, 0
		for i := range 200 {
			switch rnd.IntN(10) {
			case 0, 1, 2, 3:
				body := make([]byte, max(12, rnd.IntN(400)*rnd.IntN(400)))
				copy(body, fmt.Sprintf("%012d", i))
				f.append(body)
				want = append(want, string(body[:12]))
			case 4, 5, 6:
				counted += drain(t, &q, l, rnd, false)
			case 7:
				counted += drain(t, &q, l, rnd, true)
			case 8:
				q.urgent(whole(fixed(zmtp.AppendPing(nil, 0, []byte("abc")))))
				pings++
			case 9:
				q.leave(f)
				nudge := fmt.Sprintf("nudge%07d", i)
				q.segs = append(q.segs, whole(fixed(zmtp.AppendMessage(nil, []byte(nudge)))))
				want = append(want, nudge)
				counted++ // nudges are not counted as deliveries
				f = newFeed(f.gen+1, &encodings[ZeroMQ], 1000, 1<<30)
				q.follow(f)
			}
		}
		counted += drain(t, &q, l, rnd, true)
		var got []string
		for _, h := range l.got {
			if h.kind == zmtp.Command {
				pings--
			} else {
				got = append(got, h.body)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: got %v\nwant %v", seed, got, want)
		}
		if pings != 0 || counted != len(want) || len(q.segs) != 1 {
			t.Fatalf("seed %d: pings off by %d, counted %d of %d, %d segs", seed, pings, counted, len(want), len(q.segs))
		}
	}
}

// TestOutqFiltered does the same for topic and body in two segs: nothing may
// come between them.
func TestOutqFiltered(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var q outq
		f := newFeed(0, &encodings[ZeroMQ], 1000, 1<<30)
		l := newListen()
		topic := fixed(zmtp.AppendFrame(nil, []byte(broadcast), true))
		want, counted := 0, 0
		for i := range 200 {
			switch rnd.IntN(6) {
			case 0, 1:
				r := f.append(make([]byte, rnd.IntN(3000)))
				if i%3 == 0 { // a publication of its own
					c := fixed(zmtp.AppendMessage(nil, make([]byte, rnd.IntN(300))))
					r = region{chunk: c, end: uint32(c.used)}
				}
				q.segs = append(q.segs, whole(topic), r.rest())
				want++
			case 2, 3, 4:
				counted += drain(t, &q, l, rnd, false)
			case 5:
				q.urgent(whole(fixed(zmtp.AppendPing(nil, 0, nil))))
			}
		}
		counted += drain(t, &q, l, rnd, true)
		for i, h := range l.got {
			if h.more && (h.body != broadcast || l.got[i+1].kind != zmtp.Frame || l.got[i+1].more) {
				t.Fatalf("seed %d: %+v followed by %+v", seed, h, l.got[i+1])
			}
		}
		if counted != want || len(q.segs) != 0 {
			t.Fatalf("seed %d: counted %d of %d, %d segs left", seed, counted, want, len(q.segs))
		}
	}
}

func TestFeedLowest(t *testing.T) {
	f := newFeed(0, &encodings[ZeroMQ], 3, 1<<30)
	for range 3 {
		f.append(make([]byte, 8))
	}
	if low := f.lowest.Load(); low != 0 {
		t.Fatalf("three behind of three allowed, yet lowest is %d", low)
	}
	f.append(make([]byte, 8))
	if low := f.lowest.Load(); low != 10 {
		t.Fatalf("lowest %d, want the start of the third last", low)
	}
	g := newFeed(0, &encodings[ZeroMQ], 3, 100)
	g.append(make([]byte, 1000))
	if low := g.lowest.Load(); low != 0 {
		t.Fatalf("the newest message may always be pending, lowest %d", low)
	}
	g.append(nil)
	if low := g.lowest.Load(); low == 0 {
		t.Fatal("bytes do not count")
	}
}
