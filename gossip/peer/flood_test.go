package peer

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"
)

// dialRaw opens a tcp connection that says nothing, from a loopback address of its own.
func dialRaw(t *testing.T, p *Port, from string) net.Conn {
	t.Helper()
	d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
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
	// 4 of the first address and 2 of the second have a place; 12 are cut at once.
	eventually(t, func() string {
		if n := countClosed(silent); n < 12 {
			return "the bound on handshakes does not hold"
		}
		return ""
	})
	// All places for strangers are taken; a member gets in all the same (127.0.0.1 is on the roster).
	if err := works(dial(t, b, "a", ProtoRaft)); err != nil {
		t.Errorf("a member during the flood: %v", err)
	}
	// The silent ones are cut when their time is over.
	eventually(t, func() string {
		if n := countClosed(silent); n != len(silent) {
			return "silent connections stay open"
		}
		return ""
	})
	eventually(t, func() string {
		a.gate.mu.Lock()
		defer a.gate.mu.Unlock()
		if a.gate.strangers != 0 || len(a.gate.busy) != 0 {
			return "places are not given back"
		}
		return ""
	})
}

func TestSilentListenerDoesNotHoldDial(t *testing.T) {
	m := newMesh(t)
	a := m.member("a", func(c *Config) { c.Limits.Handshake = 100 * time.Millisecond })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dead := entryOf(a)
	dead.ID, dead.Fingerprint = "dead", identity(t, "dead").Fingerprint()
	dead.Addr = ln.Addr().(*net.TCPAddr).AddrPort()
	m.add(dead)
	if _, err := a.Dial(context.Background(), "dead", ProtoRaft); err == nil {
		t.Error("dial of a silent host succeeded")
	}
	if all, _ := a.reg.counts(); all != 0 {
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
