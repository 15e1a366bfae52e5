package netconn

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// TestSetReadDeadline_DuringFreeze checks that a reader which sets its deadline in a freeze, and only reads when that
// is over, is not ended as one that has waited too long.
func TestSetReadDeadline_DuringFreeze(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	peer, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer peer.Close()
	c, err := ln.Accept()
	require.NoError(t, err)
	defer c.Close()
	var l Conn
	f := NewFreezer()
	owner := NewListener(ListenerConfig{Freezer: f})
	require.NoError(t, l.Init(Accepted{c.(*net.TCPConn), netip.MustParseAddrPort("192.0.2.1:1"), owner, nil}))
	require.NoError(t, f.Begin())
	l.SetReadDeadline(time.Now().Add(20 * time.Second))
	f.Finish(false)
	if _, err := peer.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	heard := false
	err = l.Follow(func([]byte) error { heard = true; return net.ErrClosed })
	if !heard {
		t.Errorf("the reader was ended: %v", err)
	}
}
