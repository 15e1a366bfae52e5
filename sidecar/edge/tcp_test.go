package edge

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/saltwire/tcpframe"
	"saltclusterd/sidecar/zmtp"
)

// tcpPeer is a minion with Salt's tcp transport.
type tcpPeer struct {
	t    *testing.T
	conn net.Conn
	dec  tcpframe.Decoder
	in   []byte
}

func dialTCP(t *testing.T, e addressed) *tcpPeer {
	t.Helper()
	return &tcpPeer{t: t, conn: dialRaw(t, e), dec: tcpframe.NewDecoder(64 << 20)}
}

// tcpFrame is a message of a minion; without a mid it is one on the publish port.
func tcpFrame(mid string, body []byte) []byte {
	head := []byte("\x80")
	if mid != "" {
		head = saltwire.AppendRaw([]byte("\x81\xa3mid"), mid)
	}
	return append(tcpframe.AppendReplyHead(nil, head), body...)
}

func text(s string) []byte { return saltwire.AppendRaw(nil, s) }

func (p *tcpPeer) write(b []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// read returns the mid and the body of the next frame.
func (p *tcpPeer) read() (mid, body string) {
	p.t.Helper()
	room := make([]byte, 64<<10)
	for {
		f, n, ok, err := p.dec.Next(p.in)
		require.NoError(p.t, err)
		if p.in = p.in[n:]; ok {
			_ = saltwire.WalkMap(f.Head, func(_ []byte, v saltwire.Value) error {
				b, _ := saltwire.Bytes(v)
				mid = string(b)
				return nil
			})
			b, _ := saltwire.Bytes(f.Body)
			return mid, string(b)
		}
		if n, err = p.conn.Read(room); err != nil {
			p.t.Fatal(err)
		}
		p.in = bytes.Clone(room[:n])
	}
}

// expect wants publications.
func (p *tcpPeer) expect(want ...string) {
	p.t.Helper()
	for _, w := range want {
		if _, got := p.read(); got != w {
			p.t.Fatalf("got %.60q, want %.60q", got, w)
		}
	}
}

func TestTCPReq_Pipelined(t *testing.T) {
	const n = 20
	var kept []*Request
	e := openReq(t, ReqConfig{}, func(r *Request) { // one connection: no other goroutine asks
		if kept = append(kept, r); len(kept) == n {
			for i := range kept { // the last first
				r := kept[n-1-i]
				r.Reply(r.Body)
			}
		}
	})
	p := dialTCP(t, e)
	var all []byte
	for i := range n {
		all = append(all, tcpFrame(fmt.Sprint("mid", i), text(strings.Repeat("x", i*1000)))...)
	}
	for ; len(all) > 0; all = all[min(len(all), 777):] {
		p.write(all[:min(len(all), 777)])
	}
	for i := range n {
		mid, body := p.read()
		if want := n - 1 - i; mid != fmt.Sprint("mid", want) || len(body) != want*1000 {
			t.Fatalf("%s with %d bytes, want that of %d", mid, len(body), want)
		}
	}
}

// TestOnePort_EachTransport asks on one port, behind a load balancer, in each transport.
func TestOnePort_EachTransport(t *testing.T) {
	seen := make(chan netip.AddrPort, 2)
	e := openReq(t, ReqConfig{Proxies: loopback}, func(r *Request) { seen <- r.Remote; r.Reply(r.Body) })
	ask(t, dialFor(t, e, "REQ", "192.0.2.7"), "\xa3abc")
	p := dialTCP(t, e)
	for _, b := range append([]byte(header("192.0.2.8")), tcpFrame("1", text("abc"))...) {
		p.write([]byte{b})
	}
	if mid, body := p.read(); mid != "1" || body != "abc" {
		t.Errorf("%s %q", mid, body)
	}
	for _, want := range []string{"192.0.2.7:4711", "192.0.2.8:4711"} {
		if got := <-seen; got.String() != want {
			t.Errorf("from %s, want %s", got, want)
		}
	}
}

func TestTCPReq_EmptyReply(t *testing.T) {
	e := openReq(t, ReqConfig{}, func(r *Request) { r.Reply(nil) })
	p := dialTCP(t, e)
	p.write(tcpFrame("1", text("x")))
	if mid, body := p.read(); mid != "1" || body != "" {
		t.Errorf("%s %q", mid, body)
	}
}

// refusedFor says something at an edge, which ends the connection for it.
func refusedFor(t *testing.T, name, said string, e addressed, met *metrics) {
	t.Helper()
	before := reasonCount(met, netconn.ReasonProtocol)
	c := dialRaw(t, e)
	_, _ = c.Write([]byte(said))
	ended(t, c)
	patience.WaitFor(t, name+" counts", func() bool { return reasonCount(met, netconn.ReasonProtocol) == before+1 })
}

// TestTransports_Refused opens connections whose first bytes are of no transport that is served.
func TestTransports_Refused(t *testing.T) {
	req := openReq(t, ReqConfig{Served: Served{Transports: []Transport{ZeroMQ}}}, echo)
	pub := openPub(t, PubConfig{Served: Served{Transports: []Transport{ZeroMQ}}})
	for name, said := range map[string]string{
		"TLS": "\x16\x03\x01\x02\x00", "WebSocket": "GET /ws HTTP/1.1\r\n", "left out": string(tcpFrame("1", text("x"))),
		"msgpack of another kind": "\x81\xa1x\x01",
	} {
		refusedFor(t, name, said, req, req.metrics)
		refusedFor(t, name, said, pub, pub.metrics)
	}
	ask(t, dial(t, req, "REQ"), "undisturbed")
}

// TestTCP_Hostile sends what a minion does not.
func TestTCP_Hostile(t *testing.T) {
	e := openReq(t, ReqConfig{MessageTimeout: 300 * time.Millisecond, Limits: zmtp.Limits{MaxMessage: 1 << 20}}, echo)
	pub := openPub(t, PubConfig{Identify: func([]byte) (string, bool) { return "", false }})
	for _, h := range []struct {
		name   string
		say    string
		reason netconn.Reason
		pub    bool
	}{
		{"another map", "\x82\xa1a\x01\xa1b\x02", netconn.ReasonProtocol, false},
		{"too large", "\x82\xa4head\x80\xa4body\xdb\x00\x20\x00\x00", netconn.ReasonLimit, false},
		{"too many values", "\x82\xa4head\x80\xa4body\xdf\x00\x20\x00\x00", netconn.ReasonLimit, false},
		{"too deep", "\x82\xa4head\x80\xa4body" + strings.Repeat("\x91", 500), netconn.ReasonProtocol, false},
		{"a frame without end", "\x82\xa4head", netconn.ReasonSlowMessage, false},
		{"ZMTP behind a frame", string(tcpFrame("1", text("x"))) + string(hello("REQ")), netconn.ReasonProtocol, false},
		{"a large name", "\x82\xa4head\x80\xa4body\xda\x20\x00", netconn.ReasonLimit, true},
		{"many names", strings.Repeat(string(tcpFrame("", text("x"))), maxNames+1), netconn.ReasonSubscriptions, true},
	} {
		t.Run(h.name, func(t *testing.T) {
			var edge addressed = e
			met := e.metrics
			if h.pub {
				edge, met = pub, pub.metrics
			}
			before := reasonCount(met, h.reason)
			c := dialRaw(t, edge)
			_, _ = c.Write([]byte(h.say))
			ended(t, c)
			patience.WaitFor(t, "counted "+h.reason.String(), func() bool { return reasonCount(met, h.reason) == before+1 })
			patience.WaitFor(t, "no memory held", func() bool { return e.Stats().Memory == 0 })
		})
	}
	good := dialTCP(t, e)
	good.write(tcpFrame("1", text("undisturbed")))
	good.expect("undisturbed")
}

// said names minions by what they say.
func said(body []byte) (string, bool) {
	id, _ := saltwire.Bytes(body)
	return string(id), len(id) > 0 && id[0] == 'm'
}

// subscribeTCP is a subscriber that has named itself.
func subscribeTCP(t *testing.T, e *PubEdge, id string) *tcpPeer {
	t.Helper()
	before := e.Stats().Subscribers
	p := dialTCP(t, e)
	p.write(tcpFrame("", text(id)))
	patience.WaitFor(t, id+" subscribed", func() bool { return e.Stats().Subscribers == before+1 })
	return p
}

func TestTCPPub_Targets(t *testing.T) {
	for name, targeted := range map[string]bool{"targeted": true, "with order_masters": false} {
		t.Run(name, func(t *testing.T) {
			e := openPub(t, PubConfig{Identify: said, Targeted: func() bool { return targeted }})
			one, two, nameless := subscribeTCP(t, e, "m1"), subscribeTCP(t, e, "m2"), subscribeTCP(t, e, "stranger")
			zero, filtering := subscribeTo(t, e, ""), subscribeTo(t, e, idTopic("m1"))
			patience.WaitFor(t, "all have subscribed", func() bool { return e.Stats().Subscribers == 5 })
			patience.WaitFor(t, "they are named", func() bool {
				n := 0
				for _, s := range e.Subscribers() {
					if s.Topic == idTopic("m1") || s.Topic == idTopic("m2") {
						n++
					}
				}
				return n == 3
			})
			e.Publish(Publication{Body: []byte("all 1")})
			e.Publish(Publication{Body: []byte("for m1"), Topics: []string{idTopic("m1")}})
			e.Publish(Publication{Body: []byte("syndics"), Topics: []string{"syndic"}, TopicOnly: true})
			e.Publish(Publication{Body: []byte("all 2")})
			for _, p := range []*tcpPeer{one, nameless} {
				p.expect("all 1", "for m1", "all 2")
			}
			if targeted {
				two.expect("all 1", "all 2")
			} else {
				two.expect("all 1", "for m1", "all 2")
			}
			expect(t, zero, "all 1", "for m1", "all 2")
			expect(t, filtering, "for m1")
		})
	}
}

// TestTCPPub_NamedAmidPublications names a subscriber while much is published: it misses nothing and gets nothing
// twice.
func TestTCPPub_NamedAmidPublications(t *testing.T) {
	const n = 3000
	e := openPub(t, PubConfig{Identify: said, Targeted: func() bool { return true }, QueueMessages: 2 * n})
	p := subscribeTCP(t, e, "stranger")
	named := make(chan struct{})
	go func() {
		defer close(named)
		time.Sleep(time.Millisecond) // somewhere in the middle
		_, _ = p.conn.Write(tcpFrame("", text("m1")))
	}()
	for i := range n {
		e.Publish(Publication{Body: fmt.Append(nil, i)})
	}
	<-named
	for i := range n {
		p.expect(fmt.Sprint(i))
	}
}

func TestTCPPub_Rotation(t *testing.T) {
	e := openPub(t, PubConfig{Identify: said, Targeted: func() bool { return true }})
	peers := []*tcpPeer{subscribeTCP(t, e, "m1"), subscribeTCP(t, e, "stranger")}
	e.Publish(Publication{Body: []byte("old")})
	e.Rotate(Rotation{Nudge: []byte("nudge")})
	e.Publish(Publication{Body: []byte("new"), Prev: []byte("wrong")})
	for _, p := range peers {
		p.expect("old", "nudge", "new")
	}
}

// TestTCPPub_Silent: who says nothing in the time that a minion may take to sign in again is cut, and not sooner.
func TestTCPPub_Silent(t *testing.T) {
	e := openPub(t, PubConfig{HandshakeTimeout: 20 * time.Millisecond})
	began := time.Now()
	ended(t, dialRaw(t, e))
	if d := time.Since(began); d < silentFactor*20*time.Millisecond {
		t.Errorf("cut after %s", d)
	}
	p := subscribeTCP(t, e, "m1")
	e.Publish(Publication{Body: []byte("x")})
	p.expect("x")
}

// TestTCPPub_SignsOfLife wants what every minion passes over, and a slow one cut that reads nothing.
func TestTCPPub_SignsOfLife(t *testing.T) {
	e := openPub(t, PubConfig{Heartbeat: 20 * time.Millisecond})
	subscribeTCP(t, e, "m1").expect(string(unread), string(unread))
	slow := openPub(t, PubConfig{QueueMessages: 10, HeartbeatTimeout: 100 * time.Millisecond, Identify: said,
		Targeted: func() bool { return true }})
	for _, id := range []string{"m1", "stranger"} {
		for _, topics := range [][]string{nil, {idTopic("m1")}} {
			p := subscribeTCP(t, slow, id)
			for slow.Stats().Conns > 0 {
				slow.Publish(Publication{Body: make([]byte, 1<<20), Topics: topics})
			}
			_ = p.conn.Close()
		}
	}
	patience.WaitFor(t, "four were cut", func() bool { // by the edge, or by the kernel's timeout if that is first: then they have gone
		return slow.Stats().Cut+uint64(reasonCount(slow.metrics, netconn.ReasonGone)) == 4
	})
}

func TestTCPPub_SurvivesUpgrades(t *testing.T) {
	e := openPub(t, PubConfig{Identify: said, Targeted: func() bool { return true }})
	named, nameless := subscribeTCP(t, e, "m1"), subscribeTCP(t, e, "stranger")
	halfway := dialTCP(t, e) // a frame cut in two
	name := tcpFrame("", text("m2"))
	halfway.write(name[:9])
	silent := dialTCP(t, e)
	patience.WaitFor(t, "four connections", func() bool { return e.Stats().Conns == 4 })
	for i := range 3 {
		large := strings.Repeat("x", 300<<10) // more than a socket takes at once
		e.Publish(Publication{Body: []byte(large)})
		e = upgradePub(t, e)
		e.Publish(Publication{Body: fmt.Append(nil, i)})
		e.Publish(Publication{Body: []byte("not for m1"), Topics: []string{idTopic("m2")}})
		named.expect(large, fmt.Sprint(i))
		nameless.expect(large, fmt.Sprint(i), "not for m1")
	}
	halfway.write(name[9:])
	silent.write(tcpFrame("", text("m3")))
	patience.WaitFor(t, "four subscribers", func() bool { return e.Stats().Subscribers == 4 })
	e.Publish(Publication{Body: []byte("for m2"), Topics: []string{idTopic("m2")}})
	e.Publish(Publication{Body: []byte("all")})
	halfway.expect("for m2", "all")
	silent.expect("all")
}

func TestTCPReq_Takeover(t *testing.T) {
	var first atomic.Pointer[Request]
	e := openReq(t, ReqConfig{MaxInFlightPerConn: 1}, func(r *Request) { first.CompareAndSwap(nil, r) })
	p := dialTCP(t, e)
	p.write(tcpFrame("a", text("one")))
	patience.WaitFor(t, "the request", func() bool { return first.Load() != nil })
	last := tcpFrame("c", text(strings.Repeat("three", 1000)))
	p.write(append(tcpFrame("b", text("two")), last[:2000]...)) // one finds no place, one is cut in two
	next := upgradeReq(t, e, echo, func(*ReqEdge) {})
	p.write(last[2000:])
	first.Load().Reply(text("answer"))
	for _, want := range [][2]string{{"a", "answer"}, {"b", "two"}, {"c", strings.Repeat("three", 1000)}} {
		if mid, body := p.read(); mid != want[0] || body != want[1] {
			t.Fatalf("%s %.20q, want %.20q", mid, body, want)
		}
	}
	patience.WaitFor(t, "no request in flight", func() bool { st := next.Stats(); return st.InFlight == 0 && st.Memory == 0 })
}

func TestTCP_Drain(t *testing.T) {
	e := openReq(t, ReqConfig{}, echo)
	pub := openPub(t, PubConfig{})
	p := dialTCP(t, e)
	p.write(tcpFrame("a", text("one")))
	p.expect("one")
	s := subscribeTCP(t, pub, "m1")
	e.Drain(t.Context(), time.Millisecond)
	pub.Drain(t.Context(), time.Millisecond)
	ended(t, p.conn)
	ended(t, s.conn)
}
