package zmtp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"saltclusterd/integration/check"
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

// A message that finds no room waits for it, no longer than WriteTimeout; the next one is not late because of that.
func TestClientWaitsForRoom(t *testing.T) {
	a, b := tcpPair(t)
	const limit = time.Second
	c := newClient(a, ClientOptions{WriteTimeout: limit}.withDefaults(), clientRoom)
	part := bytes.Repeat([]byte{7}, 32<<10)
	const messages = 1000 // more than both sockets hold
	sent := make(chan error, 1)
	go func() {
		var err error
		for range messages {
			if err = c.WriteMessage(part); err != nil {
				break
			}
		}
		sent <- err
	}()
	time.Sleep(50 * time.Millisecond) // it is waiting by now, on most machines
	_ = b.SetReadDeadline(time.Now().Add(20 * time.Second))
	if n, err := io.CopyN(io.Discard, b, int64(messages*len(AppendMessage(nil, part)))); err != nil {
		t.Fatal(n, err)
	}
	require.NoError(t, <-sent)
	time.Sleep(limit + limit/10)
	check.NoError(t, c.WriteMessage([]byte("late")), "a deadline was left behind")
	var err error
	for range 10 * messages {
		if err = c.WriteMessage(part); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nobody reads: %v", err)
	}
}
