package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// dialRaw opens a tcp connection that says nothing, from a loopback address of its own.
func dialRaw(t *testing.T, p *Port, from string) net.Conn {
	t.Helper()
	d := net.Dialer{Timeout: testTimeout, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", p.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func closedByPeer(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return err != nil && !isTimeout(err)
}

func countClosed(conns []net.Conn) (n int) {
	for _, c := range conns {
		if closedByPeer(c) {
			n++
		}
	}
	return n
}

func TestHandshakeFlood(t *testing.T) {
	m := newMesh(t)
	limits := func(c *Config) {
		c.Limits.Handshakes, c.Limits.HandshakesPerAddr, c.Limits.MemberHandshakes = 6, 4, 8
		c.Limits.Handshake = 2 * time.Second
	}
	a, b := m.member("a", limits), m.member("b", nil)
	echo(t, a, ProtoRaft)
	var silent []net.Conn
	for _, from := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"} {
		for range 6 {
			silent = append(silent, dialRaw(t, a, from))
		}
	}
	// 6 have a place; 12 are cut at once.
	patience.WaitSettled(t, func() string {
		if n := countClosed(silent); n < 12 {
			return "the bound on handshakes does not hold"
		}
		return ""
	})
	// All places for strangers are taken; a member gets in all the same (127.0.0.1 is on the roster).
	check.NoError(t, works(dial(t, b, "a", ProtoRaft)), "a member during the flood")
	// The silent ones are cut when their time is over.
	patience.WaitSettled(t, func() string {
		if n := countClosed(silent); n != len(silent) {
			return "silent connections stay open"
		}
		return ""
	})
	patience.WaitSettled(t, func() string {
		a.gate.mu.Lock()
		defer a.gate.mu.Unlock()
		if a.gate.waiting.Len() != 0 || len(a.gate.busy) != 0 {
			return "places are not given back"
		}
		return ""
	})
}

// drips writes what parts gives, a little at a time, until the other side ends the connection, and says how much that
// took.
func drips(t *testing.T, c net.Conn, part func(i int) []byte) (written int) {
	t.Helper()
	const enough = 64 << 20
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	over := time.Now().Add(testTimeout)
	for i := 0; !closedByPeer(c); i++ {
		_ = c.SetWriteDeadline(over)
		n, err := c.Write(part(i))
		if written += n; err != nil && !isTimeout(err) {
			break
		}
		if err != nil || written > enough || time.Now().After(over) {
			t.Errorf("%d bytes were taken, and the connection stays", written)
			break
		}
		<-pause.C
	}
	return written
}

// Strangers who take their time, or send what has no end, are cut when their time is over or as soon as that is seen,
// whatever they keep moving: a handshake byte by byte, one whose length is a lie, headers of HTTP without TLS, a proof
// byte by byte behind a good handshake. Their places are free then, and a member gets in all the while.
func TestStrangersWhoTakeTheirTime(t *testing.T) {
	const limit = 300 * time.Millisecond
	m := newMesh(t)
	a := m.member("a", func(c *Config) { c.Join, c.Limits.Handshake, c.Limits.JoinProof = &admission{}, limit, limit })
	b := m.member("b", nil)
	echo(t, a, ProtoRaft)
	var hello bytes.Buffer // the first flight of an honest joiner
	joiner := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{identity(t, "joiner").currentCert().cert},
		NextProtos: []string{ProtoJoin}}
	_ = tls.Client(recording{&hello}, joiner).Handshake()
	first := hello.Bytes()
	if len(first) < 100 {
		t.Fatalf("the first flight has %d bytes", len(first))
	}
	noise := bytes.Repeat([]byte{'x'}, 16<<10)
	var conns sync.WaitGroup
	for name, c := range map[string]struct {
		secured bool // behind a good handshake, by the way of joiners
		part    func(i int) []byte
		most    int // bytes that may be taken
	}{
		"a handshake byte by byte": {false, func(i int) []byte { return first[i%(len(first)-1):][:1] }, len(first) - 1},
		"a handshake without end": {false, func(i int) []byte {
			if i == 0 {
				return append([]byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}, noise[:16<<10-4]...)
			}
			return append([]byte{22, 3, 1, 0x40, 0}, noise...)
		}, 8 << 20},
		"headers of HTTP": {false, func(int) []byte { return []byte("GET / HTTP/1.1\r\nX: " + string(noise)) },
			8 << 20},
		"a proof byte by byte": {true, func(i int) []byte { return []byte{byte(min(i, 1))} }, 4 << 10},
		"a proof without an end": {true, func(int) []byte { return append([]byte{frameHello, 0xff, 0xff, 0xff}, noise...) },
			8 << 20},
	} {
		conns.Go(func() {
			raw := dialRaw(t, a, "127.0.0.2")
			conn := raw
			if c.secured {
				secure := tls.Client(raw, joiner)
				_ = secure.SetDeadline(time.Now().Add(testTimeout))
				if err := secure.Handshake(); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				conn = secure
			}
			if n := drips(t, conn, c.part); n > c.most {
				t.Errorf("%s: %d bytes were taken", name, n)
			}
		})
	}
	check.NoError(t, works(dial(t, b, "a", ProtoRaft)), "a member meanwhile")
	conns.Wait()
	patience.WaitSettled(t, func() string {
		a.gate.mu.Lock()
		defer a.gate.mu.Unlock()
		if a.gate.waiting.Len() != 0 {
			return "places are not given back"
		}
		return ""
	})
}

// recording keeps what is written, and answers nothing.
type recording struct{ to *bytes.Buffer }

func (r recording) Write(p []byte) (int, error)    { return r.to.Write(p) }
func (recording) Read([]byte) (int, error)         { return 0, io.EOF }
func (recording) Close() error                     { return nil }
func (recording) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (recording) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (recording) SetDeadline(time.Time) error      { return nil }
func (recording) SetReadDeadline(time.Time) error  { return nil }
func (recording) SetWriteDeadline(time.Time) error { return nil }

// A host that accepts and never answers does not hold up Dial. (For other protocols the port goes on looking for it.)
func TestDial_HandshakeTimeout(t *testing.T) {
	m := newMesh(t)
	a := m.member("a", func(c *Config) { c.Limits.Handshake = 100 * time.Millisecond })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	dead := entryOf(a)
	dead.ID, dead.Fingerprint = "dead", identity(t, "dead").Fingerprint()
	dead.Addr = ln.Addr().(*net.TCPAddr).AddrPort()
	m.add(dead)
	if _, err := a.Dial(context.Background(), "dead", ProtoGossip); err == nil {
		t.Error("dial of a silent host succeeded")
	}
	if all, _ := a.reg.countConns(); all != 0 {
		t.Errorf("%d connections are left", all)
	}
}

func TestCountAs(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::", "2001:db8:0:0:ffff::9": "2001:db8::",
	} {
		if got := countAs(netip.MustParseAddr(in)); got.String() != want {
			t.Errorf("countAs(%s) = %s, want %s", in, got, want)
		}
	}
}
