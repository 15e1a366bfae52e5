package edge

import (
	"context"
	"fmt"
	"net"
	"testing"

	"saltclusterd/integration/require"
)

// freePort is a port that was free a moment ago at two loopback addresses.
func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// TestListenOnOtherAddresses wants an edge to listen on addresses that appear and not on those that go, and its
// connections to stay.
func TestListenOnOtherAddresses(t *testing.T) {
	port := freePort(t)
	first, second := fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.2:%d", port)
	e := openReq(t, ReqConfig{}, echo)
	ctx := context.Background()
	reaches := func(addr string) bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	set := func(addrs ...string) {
		t.Helper()
		require.NoError(t, e.ListenOn(ctx, addrs))
	}
	set(first)
	good := dial(t, e, "REQ")
	set(first, second)
	if ask(t, good, "x"); !reaches(first) || !reaches(second) {
		t.Error("not both addresses are listened on")
	}
	set(second)
	if ask(t, good, "y"); reaches(first) || !reaches(second) {
		t.Error("the former address is listened on, or the other is not")
	}
	if err := e.ListenOn(ctx, []string{"192.0.2.1:1", second}); err == nil || !reaches(second) {
		t.Errorf("an address that this host does not have: %v", err)
	}
	require.NoError(t, e.Freeze(ctx))
	if err := e.ListenOn(ctx, []string{first}); err == nil {
		t.Error("a frozen edge has changed its addresses")
	}
	e.Thaw()
	e.Drain(ctx, 0)
	set(first)
	if reaches(first) || reaches(second) {
		t.Error("an edge that drains listens")
	}
	if err := e.Resume(ctx); err != nil || !reaches(first) || reaches(second) {
		t.Errorf("after the drain: %v", err)
	}
}
