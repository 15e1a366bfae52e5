package zmtp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// tcpPair is two ends of a connection.
func tcpPair(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	x, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	y, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = x.Close(), y.Close() })
	return x.(*net.TCPConn), y.(*net.TCPConn)
}

func descriptor(t *testing.T, c *net.TCPConn) (fd int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(f uintptr) { fd = int(f) })
	}
	if err != nil {
		t.Fatal(err)
	}
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
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	time.Sleep(limit + limit/10)
	if err := c.WriteMessage([]byte("late")); err != nil {
		t.Errorf("a deadline was left behind: %v", err)
	}
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
