package edge

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/zmtp"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// header is what a load balancer says in front of a peer with this address.
func header(addr string) string {
	if netip.MustParseAddr(addr).Is6() {
		return fmt.Sprintf("PROXY TCP6 %s 2001:db8:ff::1 4711 4506\r\n", addr)
	}
	return fmt.Sprintf("PROXY TCP4 %s 10.0.0.1 4711 4506\r\n", addr)
}

// dialFor is a peer behind a load balancer.
func dialFor(t *testing.T, e addressed, socketType, addr string) *zmtp.Client {
	t.Helper()
	conn := dialRaw(t, e)
	if _, err := conn.Write([]byte(header(addr))); err != nil {
		t.Fatal(err)
	}
	c, err := zmtp.NewClient(context.Background(), conn, zmtp.ClientOptions{SocketType: socketType})
	require.NoError(t, err)
	return c
}

func TestReqProxy_ClientAddress(t *testing.T) {
	seen := make(chan netip.AddrPort, 1)
	e := openReq(t, ReqConfig{Proxies: loopback}, func(r *Request) {
		seen <- r.Remote
		echo(r)
	})
	ask(t, dialFor(t, e, "REQ", "192.0.2.7"), "x")
	if got := <-seen; got.String() != "192.0.2.7:4711" {
		t.Errorf("it came from %s", got)
	}

	// Header, greeting, READY and request byte by byte.
	conn := dialRaw(t, e)
	all := append([]byte(header("192.0.2.8")), hello("REQ")...)
	all = zmtp.AppendMessage(all, nil, []byte("slowly"))
	for i := range all {
		if _, err := conn.Write(all[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-seen; got.String() != "192.0.2.8:4711" {
		t.Errorf("it came from %s", got)
	}

	// A load balancer's own connection is its own.
	conn = dialRaw(t, e)
	if _, err := conn.Write([]byte("PROXY UNKNOWN\r\n")); err != nil {
		t.Fatal(err)
	}
	c, err := zmtp.NewClient(t.Context(), conn, zmtp.ClientOptions{SocketType: "REQ"})
	require.NoError(t, err)
	ask(t, c, "own")
	if got := <-seen; !got.Addr().IsLoopback() {
		t.Errorf("it came from %s", got)
	}
}

func TestProxiesMustSayForWhom(t *testing.T) {
	e := openReq(t, ReqConfig{Proxies: loopback}, echo)
	for name, said := range map[string]string{
		"nothing of the kind": string(hello("REQ")),
		"broken":              "PROXY TCP4 here there 1 2\r\n",
		"without end":         "PROXY " + strings.Repeat("x", 5000),
	} {
		conn := dialRaw(t, e)
		if _, err := conn.Write([]byte(said)); err != nil {
			t.Fatal(err)
		}
		ended(t, conn)
		t.Log(name)
	}
	patience.WaitFor(t, "counted", func() bool { return reasonCount(e.metrics, netconn.ReasonProxyHeader) == 3 })
	patience.WaitFor(t, "all places are free", func() bool { return e.Stats().Conns == 0 })
}

// A PROXY header from an address that is not one of Proxies is not believed.
func TestReqProxy_UntrustedHeader(t *testing.T) {
	e := openReq(t, ReqConfig{Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, echo)
	conn := dialRaw(t, e)
	if _, err := conn.Write([]byte(header("198.51.100.1"))); err != nil {
		t.Fatal(err)
	}
	ended(t, conn)
	patience.WaitFor(t, "counted", func() bool { return reasonCount(e.metrics, netconn.ReasonProtocol) == 1 })
	ask(t, dial(t, e, "REQ"), "direct")
}

func TestPubProxy_HeaderTimeout(t *testing.T) {
	e := openPub(t, PubConfig{Proxies: loopback, HandshakeTimeout: 20 * time.Millisecond})
	conn := dialRaw(t, e)
	_, _ = conn.Write([]byte("PROXY "))
	ended(t, conn)
	patience.WaitFor(t, "counted", func() bool { return reasonCount(e.metrics, netconn.ReasonHandshake) == 1 })
}

func TestReqProxy_LimitPerClientAddress(t *testing.T) {
	e := openReq(t, ReqConfig{Proxies: loopback, MaxConnsPerAddr: 2}, echo)
	var open []*zmtp.Client
	for _, a := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.3"} {
		c := dialFor(t, e, "REQ", a)
		ask(t, c, a)
		open = append(open, c)
	}
	conn := dialRaw(t, e)
	if _, err := conn.Write(append([]byte(header("192.0.2.1")), hello("REQ")...)); err != nil {
		t.Fatal(err)
	}
	ended(t, conn)
	patience.WaitFor(t, "counted", func() bool { return reasonCount(e.metrics, netconn.ReasonAddrFull) == 1 })
	_ = open[0].Close()
	patience.WaitFor(t, "its place is free", func() bool { return e.Stats().Conns == 4 })
	ask(t, dialFor(t, e, "REQ", "192.0.2.1"), "again")
	for _, c := range open {
		_ = c.Close()
	}
}

// A host with a /64 does not get more by changing its address, and a place beside it is left for others.
func TestReqProxy_LimitPerNetwork(t *testing.T) {
	e := openReq(t, ReqConfig{Proxies: loopback, MaxConns: 6, MaxConnsPerAddr: 2}, echo)
	var open []*zmtp.Client
	for _, a := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1", "192.0.2.1"} {
		c := dialFor(t, e, "REQ", a)
		ask(t, c, a)
		open = append(open, c)
	}
	conn := dialRaw(t, e)
	if _, err := conn.Write(append([]byte(header("2001:db8::4")), hello("REQ")...)); err != nil {
		t.Fatal(err)
	}
	ended(t, conn)
	patience.WaitFor(t, "counted", func() bool { return reasonCount(e.metrics, netconn.ReasonAddrFull) == 1 })
	_ = open[0].Close()
	patience.WaitFor(t, "its place is free", func() bool { return e.Stats().Conns == 4 })
	ask(t, dialFor(t, e, "REQ", "2001:db8::4"), "again")
	for _, c := range open {
		_ = c.Close()
	}
}

func TestPubProxy_SubscriberAddresses(t *testing.T) {
	e := openPub(t, PubConfig{Proxies: loopback, Shards: 3})
	want := map[string]bool{}
	for _, a := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
		require.NoError(t, dialFor(t, e, "SUB", a).Subscribe(nil))
		want[a] = true
	}
	dialFor(t, e, "SUB", "192.0.2.9") // has not subscribed
	patience.WaitFor(t, "all are listed", func() bool { return len(e.Subscribers()) == len(want) })
	for _, s := range e.Subscribers() {
		if !want[s.Remote.Addr().String()] || s.Heard < 0 || s.Since < s.Heard {
			t.Errorf("%+v", s)
		}
	}
}
