package nowait

import (
	"net"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// tcpPair is two ends of a connection.
func tcpPair(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	x, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	y, err := ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = x.Close(), y.Close() })
	return x.(*net.TCPConn), y.(*net.TCPConn)
}

func descriptor(t *testing.T, c *net.TCPConn) (fd int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(f uintptr) { fd = int(f) })
	}
	require.NoError(t, err)
	return fd
}

func TestSocket(t *testing.T) {
	a, b := tcpPair(t)
	out, in := descriptor(t, a), descriptor(t, b)
	room := make([]byte, 100)
	if n, err := Recv(in, room); n != 0 || err != syscall.EAGAIN {
		t.Errorf("nothing was sent: %d, %v", n, err)
	}
	if n, err := Send(out, []byte("hello")); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	n := 0
	for deadline := time.Now().Add(10 * time.Second); n < 5 && time.Now().Before(deadline); {
		got, err := Recv(in, room[n:])
		if err != nil && err != syscall.EAGAIN {
			t.Fatal(err)
		}
		n += got
	}
	if string(room[:n]) != "hello" {
		t.Errorf("%q", room[:n])
	}
	full := make([]byte, MaxSend)
	var err error
	for range 10_000 {
		if _, err = Send(out, full); err != nil {
			break
		}
	}
	if err != syscall.EAGAIN {
		t.Errorf("nobody reads: %v", err)
	}
	_ = b.Close() // with something unread: a reset
	for deadline := time.Now().Add(10 * time.Second); (err == syscall.EAGAIN || err == nil) &&
		time.Now().Before(deadline); {
		_, err = Send(out, full)
	}
	if err != syscall.EPIPE && err != syscall.ECONNRESET {
		t.Errorf("nobody is there: %v", err)
	}
}
