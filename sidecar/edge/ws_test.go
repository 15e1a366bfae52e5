package edge

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/edge/tlsconfig/tlstest"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/zmtp"
)

// wsPeer is a minion with Salt's ws transport.
type wsPeer struct {
	t    testing.TB
	conn net.Conn
	in   io.Reader // behind what came with the handshake
}

// openWS shakes hands on a connection.
func openWS(t testing.TB, conn net.Conn) *wsPeer {
	t.Helper()
	in, err := shakeWS(conn)
	require.NoError(t, err)
	return &wsPeer{t: t, conn: conn, in: in}
}

// shakeWS does it where it may fail, and returns what comes behind the handshake.
func shakeWS(conn net.Conn) (io.Reader, error) {
	in, _, err := ws.Dialer{}.Upgrade(conn, &url.URL{Scheme: "http", Host: "edge", Path: "/ws"})
	if in != nil {
		return io.MultiReader(in, conn), err
	}
	return conn, err
}

func dialWS(t testing.TB, e addressed) *wsPeer {
	t.Helper()
	return openWS(t, dialRaw(t, e))
}

// wsFrame is what a client sends.
func wsFrame(op ws.OpCode, fin bool, body []byte) []byte {
	return ws.MustCompileFrame(ws.MaskFrame(ws.NewFrame(op, fin, body)))
}

func (p *wsPeer) write(b []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

func (p *wsPeer) send(body string) {
	p.t.Helper()
	p.write(wsFrame(ws.OpBinary, true, []byte(body)))
}

// readFrame reads one frame as it is.
func (p *wsPeer) readFrame() (ws.Frame, error) {
	h, err := ws.ReadHeader(p.in)
	if err != nil {
		return ws.Frame{}, err
	}
	f := ws.Frame{Header: h, Payload: make([]byte, h.Length)}
	_, err = io.ReadFull(p.in, f.Payload)
	return f, err
}

// read returns the next message, and answers PINGs before it.
func (p *wsPeer) read() string {
	p.t.Helper()
	for {
		f, err := p.readFrame()
		require.NoError(p.t, err)
		switch f.Header.OpCode {
		case ws.OpPing:
			p.write(wsFrame(ws.OpPong, true, f.Payload))
		case ws.OpBinary:
			return string(f.Payload)
		default:
			p.t.Fatalf("%+v", f.Header)
		}
	}
}

// expect wants publications, which are msgpack bytes.
func (p *wsPeer) expect(want ...string) {
	p.t.Helper()
	for _, w := range want {
		if got := p.read(); got != string(saltwire.AppendBin(nil, []byte(w))) {
			p.t.Fatalf("got %d bytes, %.60q, want %.60q", len(got), got, w)
		}
	}
}

// subscribeWS is a subscriber that is served.
func subscribeWS(t *testing.T, e *PubEdge) *wsPeer {
	t.Helper()
	before := e.Stats().Subscribers
	p := dialWS(t, e)
	patience.WaitFor(t, "it has subscribed", func() bool { return e.Stats().Subscribers == before+1 })
	return p
}

func TestWSReq(t *testing.T) {
	e := openReq(t, ReqConfig{Proxies: loopback}, func(r *Request) {
		if string(r.Body) == "nothing" {
			r.Reply(nil)
			return
		}
		r.Reply(append([]byte(r.Remote.Addr().String()+" "), r.Body...))
	})
	conn := dialRaw(t, e)
	_, _ = conn.Write([]byte(header("192.0.2.9")))
	p := openWS(t, conn)
	large := strings.Repeat("x", 3<<20)
	for _, body := range []string{"a", large, ""} {
		p.send(body)
		check.Equal(t, p.read(), "192.0.2.9 "+body)
	}
	p.send("nothing")
	if got := p.read(); got != "\xc0" {
		t.Errorf("got %.60q for no bytes", got)
	}
	p.write(wsFrame(ws.OpBinary, false, []byte("in ")))
	p.write(wsFrame(ws.OpPing, true, []byte("!")))
	p.write(wsFrame(ws.OpContinuation, true, []byte("pieces")))
	if f, err := p.readFrame(); err != nil || f.Header.OpCode != ws.OpPong || string(f.Payload) != "!" {
		t.Errorf("%+v %v", f, err)
	}
	check.Equal(t, p.read(), "192.0.2.9 in pieces")
	p.write(wsFrame(ws.OpClose, true, ws.NewCloseFrameBody(ws.StatusNormalClosure, "")))
	if f, err := p.readFrame(); err != nil || f.Header.OpCode != ws.OpClose {
		t.Errorf("%+v %v", f, err)
	}
	ended(t, conn)
	patience.WaitFor(t, "it has gone", func() bool { return reasonCount(e.metrics, netconn.ReasonGone) == 1 })
}

// TestWSReq_EachByte sends handshake and request byte by byte.
func TestWSReq_EachByte(t *testing.T) {
	e := openReq(t, ReqConfig{}, echo)
	conn := dialRaw(t, e)
	const opening = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	for _, b := range append([]byte(opening), wsFrame(ws.OpBinary, true, []byte("abc"))...) {
		_, _ = conn.Write([]byte{b})
	}
	got := make([]byte, 4096)
	n := 0
	for !bytes.Contains(got[:n], []byte("\r\n\r\n\x82\x03abc")) {
		k, err := conn.Read(got[n:])
		require.NoError(t, err, "behind", got[:n])
		n += k
	}
}

func TestWSPub(t *testing.T) {
	ca := tlstest.NewCA(t, "authority")
	e := openPub(t, PubConfig{Served: Served{TLS: always(ca.Server(tls.NoClientCert))}, Heartbeat: 50 * time.Millisecond})
	plain := subscribeWS(t, e)
	inside := tls.Client(dialRaw(t, e), ca.Client(""))
	secured := openWS(t, inside)
	patience.WaitFor(t, "both have subscribed", func() bool { return e.Stats().Subscribers == 2 })
	zero := subscribeTo(t, e, "")
	patience.WaitFor(t, "three have subscribed", func() bool { return e.Stats().Subscribers == 3 })
	large := strings.Repeat("y", 300<<10)
	e.Publish(Publication{Body: []byte("all")})
	e.Publish(Publication{Body: []byte("m1"), Topics: []string{idTopic("m1")}})
	e.Publish(Publication{Body: []byte(large)})
	e.Publish(Publication{Body: []byte("syndics"), Topics: []string{"syndic"}, TopicOnly: true})
	e.Publish(Publication{Body: []byte("last")})
	for _, p := range []*wsPeer{plain, secured} {
		p.expect("all", "m1", large, "last")
	}
	expect(t, zero, "all", "m1", large, "last")
}

// TestWSPub_Silent: a subscriber that answers no PING is cut, one that does is not.
func TestWSPub_Silent(t *testing.T) {
	e := openPub(t, PubConfig{Heartbeat: 30 * time.Millisecond, HeartbeatTimeout: 500 * time.Millisecond})
	silent, lives := subscribeWS(t, e), subscribeWS(t, e)
	done := make(chan struct{})
	go func() {
		defer close(done)
		lives.expect("last") // answers PINGs
	}()
	_ = silent
	patience.WaitFor(t, "one is cut", func() bool { return reasonCount(e.metrics, netconn.ReasonSilent) == 1 })
	e.Publish(Publication{Body: []byte("last")})
	<-done
}

func TestWSPub_Slow(t *testing.T) {
	e := openPub(t, PubConfig{QueueBytes: 1 << 20, QueueMessages: 100})
	subscribeWS(t, e)
	body := bytes.Repeat([]byte("z"), 1<<20)
	patience.WaitFor(t, "it is cut", func() bool {
		e.Publish(Publication{Body: body})
		return reasonCount(e.metrics, netconn.ReasonSlow) == 1
	})
}

// TestWSReq_Idle: a connection whose request was answered is closed after a while, one that waits for its answer is
// not.
func TestWSReq_Idle(t *testing.T) {
	kept := make(chan *Request, 1)
	e := openReq(t, ReqConfig{}, func(r *Request) {
		if string(r.Body) == "later" {
			kept <- r
			return
		}
		r.Reply(r.Body)
	})
	idle, waits, zero := dialWS(t, e), dialWS(t, e), dial(t, e, "REQ")
	ask(t, zero, "x")
	idle.send("x")
	if got := idle.read(); got != "x" {
		t.Fatal(got)
	}
	waits.send("later")
	r := <-kept
	now := netconn.Clock() + int64(wsIdle) + int64(time.Second)
	e.conns.Each(func(c *reqConn) { c.check(now) })
	ended(t, idle.conn)
	r.Reply([]byte("now"))
	check.Equal(t, waits.read(), "now")
	ask(t, zero, "x")
	patience.WaitFor(t, "one was idle", func() bool { return reasonCount(e.metrics, netconn.ReasonIdle) == 1 })
}

// TestWS_Hostile sends what a minion does not; a herd of others is served meanwhile.
func TestWS_Hostile(t *testing.T) {
	e := openReq(t, ReqConfig{MessageTimeout: 300 * time.Millisecond, HandshakeTimeout: 500 * time.Millisecond,
		Limits: zmtp.Limits{MaxMessage: 1 << 20}}, echo)
	pub := openPub(t, PubConfig{HandshakeTimeout: 500 * time.Millisecond})
	stop, herd := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(herd)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			p := dialWS(t, e)
			body := fmt.Sprint("honest ", i)
			p.send(body)
			if got := p.read(); got != body {
				herd <- fmt.Errorf("got %.60q", got)
				return
			}
			p.conn.Close()
		}
	}()
	opened := "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	for _, h := range []struct {
		name   string
		say    string
		reason netconn.Reason
		pub    bool
	}{
		{"HTTP of another kind", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", netconn.ReasonProtocol, false},
		{"junk", "Gibberish", netconn.ReasonProtocol, false},
		{"junk for the publisher", "Gibberish", netconn.ReasonProtocol, true},
		{"large headers", "GET / HTTP/1.1\r\n" + strings.Repeat("a: b\r\n", 10_000), netconn.ReasonLimit, true},
		{"half a handshake", "GET /ws HTT", netconn.ReasonSlowMessage, false},
		{"half a handshake for the publisher", "GET /ws HTT", netconn.ReasonHandshake, true},
		{"no mask", opened + "\x82\x01x", netconn.ReasonProtocol, false},
		{"a reserved op code", opened + "\x83\x81mask?", netconn.ReasonProtocol, true},
		{"a compressed frame", opened + "\xc2\x81mask?", netconn.ReasonProtocol, false},
		{"a large length", opened + "\x82\xff\x00\x00\x00\x00\x00\x20\x00\x00mask", netconn.ReasonLimit, false},
		{"a length below zero", opened + "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xffmask", netconn.ReasonProtocol, false},
		{"a message without end", opened + "\x82\xfe\x10\x00mask????", netconn.ReasonSlowMessage, false},
		{"pieces without end", opened + "\x02\x80mask", netconn.ReasonSlowMessage, false},
		{"a message to the publisher", opened + "\x82\x81mask?", netconn.ReasonProtocol, true},
		{"a piece of a message to the publisher", opened + "\x02\x80mask", netconn.ReasonProtocol, true},
		{"a large message to the publisher", opened + "\x82\xfe\x20\x00mask", netconn.ReasonLimit, true},
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
		})
	}
	close(stop)
	for err := range herd {
		t.Error(err)
	}
	patience.WaitFor(t, "no memory held", func() bool { return e.Stats().Memory == 0 })
}

// TestWS_Takeover hands connections over in the middle of a message, of a handshake, and with an answer outstanding.
func TestWS_Takeover(t *testing.T) {
	kept := make(chan *Request, 1)
	e := openReq(t, ReqConfig{}, func(r *Request) { kept <- r })
	waits, midway, opening := dialWS(t, e), dialWS(t, e), dialRaw(t, e)
	waits.send("waits")
	r := <-kept
	whole := wsFrame(ws.OpBinary, true, []byte("from both processes"))
	midway.write(wsFrame(ws.OpBinary, false, []byte("one ")))
	midway.write(wsFrame(ws.OpContinuation, false, nil))
	half := wsFrame(ws.OpContinuation, true, []byte("two"))
	midway.write(half[:7])
	_, _ = opening.Write([]byte("GET /ws HTTP/1.1\r\nHos"))
	patience.WaitFor(t, "all has been read", func() bool {
		n := 0
		e.conns.Each(func(c *reqConn) {
			if c.Heard() > 0 {
				n++
			}
		})
		return n == 3
	})
	upgradeReq(t, e, echo, func(*ReqEdge) {})
	r.Reply([]byte("answered"))
	check.Equal(t, waits.read(), "answered")
	midway.write(half[7:])
	check.Equal(t, midway.read(), "one two")
	midway.write(whole)
	check.Equal(t, midway.read(), "from both processes")
	_, _ = opening.Write([]byte("t: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	got := make([]byte, 12)
	if _, err := io.ReadFull(opening, got); err != nil || string(got) != "HTTP/1.1 101" {
		t.Errorf("%q %v", got, err)
	}
}

// TestWSPub_SurvivesUpgrades: a subscriber keeps its connection, which Salt's minions never open again.
func TestWSPub_SurvivesUpgrades(t *testing.T) {
	e := openPub(t, PubConfig{})
	p := subscribeWS(t, e)
	for i := range 3 {
		large := strings.Repeat("x", 300<<10) // more than a socket takes at once
		e.Publish(Publication{Body: []byte(large)})
		e = upgradePub(t, e)
		e.Publish(Publication{Body: fmt.Append(nil, i)})
		p.expect(large, fmt.Sprint(i))
	}
	if n := gaugeValue(e.metrics.speaking(WS, false)); n != 1 {
		t.Errorf("%v connections are counted", n)
	}
	p.conn.Close()
	patience.WaitFor(t, "none is counted", func() bool { return gaugeValue(e.metrics.speaking(WS, false)) == 0 })
}

// readEnd wants what ends a subscriber, after publications.
func (p *wsPeer) readEnd() {
	p.t.Helper()
	if got := p.read(); got != "\xc1" {
		p.t.Fatalf("got %.60q", got)
	}
	if f, err := p.readFrame(); err != nil || f.Header.OpCode != ws.OpClose {
		p.t.Fatalf("%+v, %v", f.Header, err)
	}
	if _, err := p.readFrame(); err == nil {
		p.t.Fatal("more behind the end")
	}
}

// TestWSPub_Farewell: a subscriber whose connection the edge ends is told so, whichever process it is, and whether or
// not it uses TLS; one that was handed over is not.
func TestWSPub_Farewell(t *testing.T) {
	ca := tlstest.NewCA(t, "authority")
	served := Served{TLS: always(ca.Server(tls.NoClientCert))}
	e := openPub(t, PubConfig{Served: served})
	plain := subscribeWS(t, e)
	secured := openWS(t, tls.Client(dialRaw(t, e), ca.Client("")))
	patience.WaitFor(t, "both have subscribed", func() bool { return e.Stats().Subscribers == 2 })
	e = upgradePub(t, e)
	secured.readEnd()
	e.Publish(Publication{Body: []byte("last")})
	e.Drain(t.Context(), 0)
	plain.expect("last")
	plain.readEnd()
}
