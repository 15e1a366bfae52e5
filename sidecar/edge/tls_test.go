package edge

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/edge/tlsconfig/tlstest"
	"saltclusterd/sidecar/saltwire/tcpframe"
)

// always is a PubConfig's or ReqConfig's TLS that does not change.
func always(c *tls.Config) func() *tls.Config { return func() *tls.Config { return c } }

// dialTLS is a minion with Salt's tcp transport inside of TLS, perhaps behind a load balancer.
func dialTLS(t *testing.T, e addressed, c *tls.Config, proxyHeader string) *tcpPeer {
	t.Helper()
	raw := dialRaw(t, e)
	if _, err := raw.Write([]byte(proxyHeader)); err != nil {
		t.Fatal(err)
	}
	inside := tls.Client(raw, c)
	require.NoError(t, inside.HandshakeContext(t.Context()))
	return &tcpPeer{t: t, conn: inside, dec: tcpframe.NewDecoder(64 << 20)}
}

func TestTLSReq(t *testing.T) {
	ca := tlstest.NewCA(t, "authority")
	seen := make(chan string, 3)
	e := openReq(t, ReqConfig{Proxies: loopback, MaxConnsPerAddr: 1, Served: Served{TLS: always(ca.Server(tls.VerifyClientCertIfGiven))}},
		func(r *Request) {
			seen <- fmt.Sprint(r.Remote.Addr(), r.Identity().Names)
			r.Reply(r.Body)
		})
	large := strings.Repeat("x", 3<<20)
	for i, c := range []struct {
		config *tls.Config
		want   string
	}{
		{ca.Client(""), "192.0.2.1 []"},
		{ca.Client("m1"), "192.0.2.2 [m1]"},
		{ca.Client("m1", "m1.example.com", "m2"), "192.0.2.3 [m1 m1.example.com m2]"},
	} {
		p := dialTLS(t, e, c.config, header(fmt.Sprint("192.0.2.", i+1)))
		p.write(tcpFrame("7", text(large)))
		if mid, body := p.read(); mid != "7" || body != large {
			t.Errorf("%s with %d bytes", mid, len(body))
		}
		if got := <-seen; got != c.want {
			t.Errorf("asked by %s, want %s", got, c.want)
		}
		p.conn.Close()
		patience.WaitFor(t, "its place is free", func() bool { return e.Stats().Conns == 0 })
	}
}

func TestTLSPub(t *testing.T) {
	ca := tlstest.NewCA(t, "authority")
	e := openPub(t, PubConfig{Served: Served{TLS: always(ca.Server(tls.NoClientCert))}, Identify: said})
	p := dialTLS(t, e, ca.Client(""), "")
	p.write(tcpFrame("", text("m1")))
	patience.WaitFor(t, "it has subscribed", func() bool { return e.Stats().Subscribers == 1 })
	plain := subscribeTCP(t, e, "m2")
	large := strings.Repeat("y", 2<<20)
	for _, body := range []string{"one", large, "two"} {
		e.Publish(Publication{Body: []byte(body)})
	}
	p.expect("one", large, "two")
	plain.expect("one", large, "two")
	for secured, want := range map[bool]float64{true: 1, false: 1} {
		if n := gaugeValue(e.metrics.speaking(TCP, secured)); n != want {
			t.Errorf("%v connections are counted", n)
		}
	}
	e.Publish(Publication{Body: []byte(large[:5000])})
	e.Publish(Publication{Body: []byte("last")})
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		e.Drain(context.Background(), 0)
	}()
	p.expect(large[:5000], "last")
	if _, err := p.conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the end is %v, want one that TLS announces", err)
	}
	<-drained
}

// TestTLSPub_Slow: a subscriber that does not read is cut, and costs no more memory than one without TLS.
func TestTLSPub_Slow(t *testing.T) {
	ca := tlstest.NewCA(t, "authority")
	e := openPub(t, PubConfig{Served: Served{TLS: always(ca.Server(tls.NoClientCert))}, QueueBytes: 1 << 20, QueueMessages: 100})
	p := dialTLS(t, e, ca.Client(""), "")
	p.write(tcpFrame("", text("m1")))
	patience.WaitFor(t, "it has subscribed", func() bool { return e.Stats().Subscribers == 1 })
	body := bytes.Repeat([]byte("z"), 1<<20)
	patience.WaitFor(t, "it is cut", func() bool {
		e.Publish(Publication{Body: body})
		return reasonCount(e.metrics, netconn.ReasonSlow) == 1
	})
	patience.WaitFor(t, "it has left", func() bool { return e.Stats().Conns == 0 })
}

// TestTLS_Refused opens connections that do not shake hands. None reaches the handler, all are counted, and others are
// served meanwhile.
func TestTLS_Refused(t *testing.T) {
	ca, other := tlstest.NewCA(t, "authority"), tlstest.NewCA(t, "authority")
	required := ca.Server(tls.RequireAndVerifyClientCert)
	served := required
	e := openReq(t, ReqConfig{HandshakeTimeout: 500 * time.Millisecond, Served: Served{TLS: func() *tls.Config { return served }}}, echo)
	for _, h := range []struct {
		name    string
		reasons []netconn.Reason
		say     func(net.Conn)
	}{
		{"no certificate", []netconn.Reason{netconn.ReasonTLS}, func(c net.Conn) {
			inside := tls.Client(c, ca.Client(""))
			_ = inside.Handshake()
			_, _ = inside.Write(tcpFrame("1", text("x")))
			_, _ = io.Copy(io.Discard, inside)
		}},
		{"one of another authority", []netconn.Reason{netconn.ReasonTLS}, func(c net.Conn) {
			cfg := other.Client("m1")
			cfg.RootCAs = ca.Pool()
			inside := tls.Client(c, cfg)
			_ = inside.Handshake()
			_, _ = io.Copy(io.Discard, inside)
		}},
		{"an old version", []netconn.Reason{netconn.ReasonTLS}, func(c net.Conn) {
			cfg := ca.Client("m1")
			cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
			_ = tls.Client(c, cfg).Handshake()
		}},
		{"half a handshake", []netconn.Reason{netconn.ReasonTLS, netconn.ReasonHandshake}, func(c net.Conn) {
			_, _ = c.Write([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc"))
		}},
		{"a record without end", []netconn.Reason{netconn.ReasonTLS, netconn.ReasonHandshake}, func(c net.Conn) {
			_, _ = c.Write([]byte("\x16\x03\x01"))
		}},
		{"garbage", []netconn.Reason{netconn.ReasonTLS}, func(c net.Conn) {
			_, _ = c.Write(bytes.Repeat([]byte("\x16\xff"), 1000))
		}},
		{"a large hello", []netconn.Reason{netconn.ReasonTLS}, func(c net.Conn) {
			record := append([]byte("\x16\x03\x01\x3f\xff\x01\xff\xff\xff"), make([]byte, 0x3fff-4)...)
			_, _ = c.Write(bytes.Repeat(record, 3))
		}},
		{"a long chain of certificates", []netconn.Reason{netconn.ReasonTLS}, func(c net.Conn) {
			cfg := ca.Client("m1")
			chain := &cfg.Certificates[0]
			for leaf := chain.Certificate[0]; len(leaf)*len(chain.Certificate) < 80<<10; {
				chain.Certificate = append(chain.Certificate, leaf)
			}
			_ = tls.Client(c, cfg).Handshake()
			_, _ = io.Copy(io.Discard, c)
		}},
		{"silence inside", []netconn.Reason{netconn.ReasonHandshake}, func(c net.Conn) {
			_ = tls.Client(c, ca.Client("m1")).Handshake()
		}},
		{"ZMTP inside", []netconn.Reason{netconn.ReasonProtocol}, func(c net.Conn) {
			_, _ = tls.Client(c, ca.Client("m1")).Write(hello("REQ"))
		}},
		{"TLS inside", []netconn.Reason{netconn.ReasonProtocol}, func(c net.Conn) {
			_, _ = tls.Client(c, ca.Client("m1")).Write([]byte("\x16\x03\x01\x02\x00"))
		}},
		{"a broken record", []netconn.Reason{netconn.ReasonTLS}, func(c net.Conn) {
			inside := tls.Client(c, ca.Client("m1"))
			_, _ = inside.Write(tcpFrame("1", text("x")))
			_, _ = inside.Read(make([]byte, 1))
			_, _ = c.Write([]byte("\x17\x03\x03\x00\x20" + strings.Repeat("?", 32)))
		}},
	} {
		t.Run(h.name, func(t *testing.T) {
			count := func() (n int) {
				for _, r := range h.reasons {
					n += reasonCount(e.metrics, r)
				}
				return n
			}
			before, answered := count(), metricValue(e.metrics.requests)
			c := dialRaw(t, e)
			h.say(c)
			ended(t, c)
			patience.WaitFor(t, "counted", func() bool { return count() == before+1 })
			patience.WaitFor(t, "it has left", func() bool { return e.Stats().Conns == 0 })
			if n := metricValue(e.metrics.requests) - answered; n > 0 && h.name != "a broken record" {
				t.Errorf("%v requests reached the handler", n)
			}
			good := dialTLS(t, e, ca.Client("m1"), "")
			good.write(tcpFrame("1", text("undisturbed")))
			good.expect("undisturbed")
			good.conn.Close()
			patience.WaitFor(t, "that has left, too", func() bool { return e.Stats().Conns == 0 })
		})
	}
	served = nil
	c := dialRaw(t, e)
	_ = tls.Client(c, ca.Client("m1")).Handshake()
	ended(t, c)
}

// TestTLS_Close: the edge closes with connections in each state, and no goroutine is left.
func TestTLS_Close(t *testing.T) {
	ca := tlstest.NewCA(t, "authority")
	e := openPub(t, PubConfig{Served: Served{TLS: always(ca.Server(tls.NoClientCert))}})
	for range 3 {
		p := dialTLS(t, e, ca.Client(""), "")
		p.write(tcpFrame("", text("m1")))
		_, _ = dialRaw(t, e).Write([]byte("\x16\x03\x01"))
	}
	patience.WaitFor(t, "all are there", func() bool { return e.Stats().Subscribers == 3 && e.Stats().Conns == 6 })
	require.NoError(t, e.Close())
	// The last thing that a goroutine does is to say that it ends; it may still stand there when Close returns.
	stacks := make([]byte, 1<<20)
	patience.WaitFor(t, "no goroutine of a link is left", func() bool {
		return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "front.(*Link)")
	})
}

// TestTLS_HandedOver: of two subscribers the one with TLS is not handed over; it is closed in order when the other
// process serves.
func TestTLS_HandedOver(t *testing.T) {
	ca := tlstest.NewCA(t, "authority")
	e := openPub(t, PubConfig{Served: Served{TLS: always(ca.Server(tls.NoClientCert))}, Identify: said})
	p := dialTLS(t, e, ca.Client(""), "")
	p.write(tcpFrame("", text("m1")))
	patience.WaitFor(t, "it has subscribed", func() bool { return e.Stats().Subscribers == 1 })
	plain := subscribeTCP(t, e, "m2")
	require.NoError(t, e.Freeze(t.Context()))
	st, err := e.Export(t.Context())
	require.NoError(t, err)
	if len(st.Descriptors) != 1 {
		t.Fatalf("%d are handed over", len(st.Descriptors))
	}
	kept, err := syscall.Dup(st.Descriptors[0]) // as the other process has it
	require.NoError(t, err)
	defer syscall.Close(kept)
	e.Hand()
	if _, err := p.conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the end is %v", err)
	}
	_ = plain.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := plain.conn.Read(make([]byte, 1)); err == io.EOF {
		t.Error("the one without TLS has ended")
	}
}

// TestTLS_Thawed: requests with TLS that come while the edge stands still are answered when a takeover has failed.
func TestTLS_Thawed(t *testing.T) {
	ca := tlstest.NewCA(t, "authority")
	e := openReq(t, ReqConfig{Served: Served{TLS: always(ca.Server(tls.NoClientCert))}}, echo)
	p := dialTLS(t, e, ca.Client(""), "")
	p.write(tcpFrame("1", text("before")))
	p.expect("before")
	for i := range 3 {
		require.NoError(t, e.Freeze(t.Context()))
		said := fmt.Sprint("meanwhile ", i)
		p.write(tcpFrame("2", text(said)))
		e.Thaw()
		p.expect(said)
	}
}

// TestTLS_Required: peers without TLS are refused, at both ports.
func TestTLS_Required(t *testing.T) {
	ca := tlstest.NewCA(t, "authority")
	served := Served{TLS: always(ca.Server(tls.NoClientCert)), RequireTLS: true}
	req, pub := openReq(t, ReqConfig{Served: served}, echo), openPub(t, PubConfig{Served: served})
	for name, said := range map[string]string{
		"zeromq": string(hello("REQ")), "tcp": string(tcpFrame("1", text("x"))), "ws": "GET /ws HTTP/1.1\r\n",
	} {
		refusedFor(t, name, said, req, req.metrics)
		refusedFor(t, name, said, pub, pub.metrics)
	}
	if n := metricValue(req.metrics.requests); n > 0 {
		t.Errorf("%v requests reached the handler", n)
	}
	c := dialTLS(t, req, ca.Client(""), "")
	c.write(tcpFrame("1", text("inside")))
	c.expect("inside")
}

// TestServed_AfterTakeover: the process that takes over refuses what its options leave out. One subscriber and one
// requester are connected for each kind.
func TestServed_AfterTakeover(t *testing.T) {
	pub, req := openPub(t, PubConfig{Identify: said}), openReq(t, ReqConfig{}, echo)
	plain := subscribeTCP(t, pub, "m1")
	zeromq := subscribeTo(t, pub, "")
	asking := dial(t, req, "REQ")
	ask(t, asking, "before")
	next := upgradePub(t, pub, func(s *Served) { s.Transports = []Transport{ZeroMQ} })
	nextReq := upgradeReq(t, req, echo, func(*ReqEdge) {}, func(s *Served) { s.RequireTLS = true })
	patience.WaitFor(t, "one is left", func() bool { return next.Stats().Conns == 1 && nextReq.Stats().Conns == 0 })
	ended(t, plain.conn)
	if _, err := asking.ReadMessage(); err == nil {
		t.Error("a connection without TLS is kept")
	}
	next.Publish(Publication{Body: []byte("for who is left")})
	if m, err := zeromq.ReadMessage(); err != nil || string(m[len(m)-1]) != "for who is left" {
		t.Errorf("%q, %v", m, err)
	}
}
