package nowait

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"saltclusterd/integration/check"
)

// More than the sockets hold goes through, and the end is seen.
func TestConn_CarriesAll(t *testing.T) {
	a, b := tcpPair(t)
	out, in := New(a), New(b)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	wrote := make(chan error, 1)
	go func() {
		n, err := out.Write(sent)
		if err == nil && n != len(sent) {
			err = io.ErrShortWrite
		}
		wrote <- errors.Join(err, out.Close())
	}()
	_ = in.SetReadDeadline(time.Now().Add(time.Minute))
	got, err := io.ReadAll(in)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("read %d of %d bytes: %v", len(got), len(sent), err)
	}
	check.NoError(t, <-wrote, "write")
}

func TestConn_Deadlines(t *testing.T) {
	a, _ := tcpPair(t)
	c := New(a)
	_ = c.SetDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nothing comes: %v", err)
	}
	full := make([]byte, 64<<20)
	if n, err := c.Write(full); !errors.Is(err, os.ErrDeadlineExceeded) || n == len(full) {
		t.Errorf("no process reads: %d, %v", n, err)
	}
}

func TestConn_CloseEndsRead(t *testing.T) {
	a, _ := tcpPair(t)
	c := New(a)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		failed <- err
	}()
	_ = c.Close()
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("read of a closed connection: %v", err)
	}
}

func TestConn_Reset(t *testing.T) {
	a, b := tcpPair(t)
	_ = b.SetLinger(0)
	_ = b.Close()
	_ = a.SetReadDeadline(time.Now().Add(time.Minute))
	var op *net.OpError
	if _, err := New(a).Read(make([]byte, 1)); !errors.As(err, &op) || op.Timeout() {
		t.Errorf("read of a connection that was reset: %v", err)
	}
}

// A connection without a descriptor works, too.
func TestConn_Pipe(t *testing.T) {
	x, y := net.Pipe()
	defer x.Close()
	defer y.Close()
	go func() { _, _ = New(x).Write([]byte("hello")) }()
	room := make([]byte, 5)
	if _, err := io.ReadFull(New(y), room); err != nil || string(room) != "hello" {
		t.Errorf("%q, %v", room, err)
	}
}

func TestConn_AllocatesNothing(t *testing.T) {
	a, b := tcpPair(t)
	out, in := New(a), New(b)
	msg, room := []byte("hello"), make([]byte, 5)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := out.Write(msg); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(in, room); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations for a message", n)
	}
}
