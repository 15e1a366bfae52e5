package edge

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"saltclusterd/sidecar/zmtp"
)

// A reader that sets its deadline in a frost, and only reads when that is over, is not one that has waited too long.
func TestSetReadDeadline_DuringFreeze(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	peer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var l link
	limits, f := zmtp.DefaultLimits, newFrost()
	if err := l.init(c.(*net.TCPConn), netip.MustParseAddrPort("192.0.2.1:1"), nil, &limits, f); err != nil {
		t.Fatal(err)
	}
	if err := f.begin(); err != nil {
		t.Fatal(err)
	}
	l.setReadDeadline(time.Now().Add(patience))
	f.finish(false)
	if _, err := peer.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	heard := false
	err = l.follow(func([]byte) error { heard = true; return net.ErrClosed })
	if !heard {
		t.Errorf("the reader was ended: %v", err)
	}
}
