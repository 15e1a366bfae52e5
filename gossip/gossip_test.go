package gossip

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

func TestThreeNodes(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	a.mustSee("a=alive")
	b, c := w.start("b"), w.start("c")
	for _, n := range []*testNode{a, b, c} {
		n.mustSee("a=alive b=alive c=alive")
	}
	if m, ok := a.Member("b"); !ok || m.Meta.Salt != "3008.3" || m.Addr.String() != b.addr || m.Since.IsZero() {
		t.Errorf("a knows b as %+v", m)
	}
	if _, ok := a.Member("nobody"); ok || a.Alive("nobody") {
		t.Error("a knows nobody")
	}

	c.kill()
	a.mustSee("a=alive b=alive c=dead")
	b.mustSee("a=alive b=alive c=dead")
	if a.Alive("c") {
		t.Error("a says that the killed node is alive")
	}
	c.open()
	for _, n := range []*testNode{a, b, c} {
		n.mustSee("a=alive b=alive c=alive")
	}
}

func TestGoodbye(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	a.mustSee("a=alive b=alive")
	b.mustSee("a=alive b=alive")
	draining := node.Meta{Draining: true}
	b.meta.Store(&draining)
	b.UpdateMeta()
	patience.WaitSettled(t, func() string {
		if m, _ := a.Member("b"); !m.Meta.Draining {
			return "a does not hear that b drains"
		}
		return ""
	})
	b.stop()
	a.mustSee("a=alive b=left")
}

func TestWatch(t *testing.T) {
	w := newWorld(t)
	a := w.start("a")
	a.mustSee("a=alive")
	ctx, cancel := context.WithCancel(context.Background())
	changed := a.Watch(ctx)
	b := w.start("b")
	waitFor := func(what string, cond func(Member) bool) {
		t.Helper()
		deadline := time.After(testTimeout)
		for {
			if m, _ := a.Member("b"); cond(m) {
				return
			}
			select {
			case <-changed:
			case <-deadline:
				t.Fatal("no notice: " + what)
			}
		}
	}
	waitFor("b is alive", func(m Member) bool { return m.State == Alive })
	b.meta.Store(&node.Meta{Subscribers: 1234})
	b.UpdateMeta()
	waitFor("b's metadata", func(m Member) bool { return m.Meta.Subscribers == 1234 })
	if m, _ := b.Member("b"); m.Meta.Subscribers != 1234 {
		t.Errorf("b knows itself as %+v", m)
	}
	b.kill()
	waitFor("b is dead", func(m Member) bool { return m.State == Dead })
	cancel()
	patience.WaitSettled(t, func() string {
		a.table.mu.Lock()
		defer a.table.mu.Unlock()
		if len(a.table.waiters) != 0 {
			return "the watch is not forgotten"
		}
		return ""
	})
}

func TestPartitionHeals(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.start("a"), w.start("b"), w.start("c")
	for _, n := range []*testNode{a, b, c} {
		n.mustSee("a=alive b=alive c=alive")
	}
	a.partition(true)
	a.mustSee("a=alive b=dead c=dead")
	b.mustSee("a=dead b=alive c=alive")
	c.mustSee("a=dead b=alive c=alive")
	a.partition(false)
	for _, n := range []*testNode{a, b, c} {
		n.mustSee("a=alive b=alive c=alive")
	}
}

func TestRotation(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.start("a"), w.start("b"), w.start("c")
	for _, n := range []*testNode{a, b, c} {
		n.mustSee("a=alive b=alive c=alive")
	}
	// Nodes get a new key one after the other, with the old one still good: nobody is missed.
	for _, n := range []*testNode{a, b, c} {
		require.NoError(t, n.SetKeys([][]byte{key(1), key(2)}))
	}
	for _, n := range []*testNode{a, b} {
		require.NoError(t, n.SetKeys([][]byte{key(2)}))
		n.keys = [][]byte{key(2)}
	}
	// c knows key 2 but speaks key 1: it is not heard any more, although it is on the roster.
	a.mustSee("a=alive b=alive c=dead")
	b.mustSee("a=alive b=alive c=dead")
	require.NoError(t, c.SetKeys([][]byte{key(2)}))
	for _, n := range []*testNode{a, b, c} {
		n.mustSee("a=alive b=alive c=alive")
	}
}

// The full revocation: roster, connections, key. The removed node keeps its old roster and key, and goes on trying.
func TestRemovedNodeStaysOut(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.start("a"), w.start("b"), w.start("c")
	for _, n := range []*testNode{a, b, c} {
		n.mustSee("a=alive b=alive c=alive")
	}
	w.remove("c")
	for _, n := range []*testNode{a, b} {
		if n.Alive("c") || n.sees() != "a=alive b=alive" {
			t.Errorf("%s sees %q right after the roster changed", n.ident.ID(), n.sees())
		}
		n.port.Revoke(c.ident.Fingerprint())
		require.NoError(t, n.SetKeys([][]byte{key(3)}))
	}
	for _, n := range []*testNode{a, b} { // memberlist itself forgets it, too
		patience.WaitSettled(t, func() string {
			for _, m := range n.list.Members() {
				if m.Name == "c" {
					return "c is still gossiped about"
				}
			}
			return ""
		})
	}
	// Even when it is on the roster again, without the key it stays out.
	addr := netip.MustParseAddrPort(c.addr)
	w.add(node.Entry{ID: "c", Addr: addr, Fingerprint: c.ident.Fingerprint()})
	time.Sleep(5 * fast.Probe) // give it time to do wrong; nothing is awaited here
	for _, n := range []*testNode{a, b} {
		if n.Alive("c") {
			t.Errorf("%s sees the removed node alive", n.ident.ID())
		}
	}
}

func TestStrangersPackets(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a"), w.start("b")
	a.mustSee("a=alive b=alive")
	target, err := net.ResolveUDPAddr("udp", a.addr)
	require.NoError(t, err)
	send := func(from string, payload []byte) {
		t.Helper()
		c, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(from)}, target)
		require.NoError(t, err)
		defer c.Close()
		if _, err := c.Write(payload); err != nil {
			t.Fatal(err)
		}
	}
	before := testutil.ToFloat64(a.m.dropped.WithLabelValues("stranger"))
	for range 10 {
		send("127.0.0.99", []byte("hello"))
	}
	patience.WaitSettled(t, func() string {
		if testutil.ToFloat64(a.m.dropped.WithLabelValues("stranger")) < before+10 {
			return "packets of strangers are not dropped"
		}
		return ""
	})
	host, _, _ := net.SplitHostPort(b.addr)
	for _, junk := range [][]byte{{0}, {244}, {244, 0}, {244, 255, 1}, []byte("\xf4\x0d6a9c7bde-uuid\x00\x01"),
		make([]byte, 9000)} {
		send(host, junk) // a member's address, but not its key
	}
	a.mustSee("a=alive b=alive")
	if !a.Alive("b") {
		t.Error("junk in b's name hurt b")
	}
}

func TestWildcardBindsAdvertisedAddress(t *testing.T) {
	port := fakePort{addr: netip.MustParseAddrPort("0.0.0.0:0"), advertise: netip.MustParseAddrPort("127.0.0.7:4520")}
	c, err := bindUDP(context.Background(), Config{Port: port})
	require.NoError(t, err)
	defer c.Close()
	if got := c.LocalAddr().(*net.UDPAddr).IP.String(); got != "127.0.0.7" {
		t.Errorf("bound to %s, want the advertised address", got)
	}
	port.advertise = netip.MustParseAddrPort("192.0.2.77:4520") // behind NAT: not an address of this host
	c2, err := bindUDP(context.Background(), Config{Port: port})
	require.NoError(t, err)
	defer c2.Close()
	if got := c2.LocalAddr().(*net.UDPAddr).IP; !got.IsUnspecified() {
		t.Errorf("bound to %s, want the wildcard", got)
	}
}

type fakePort struct {
	Port
	addr, advertise netip.AddrPort
}

func (p fakePort) Addr() netip.AddrPort      { return p.addr }
func (p fakePort) Advertise() netip.AddrPort { return p.advertise }
