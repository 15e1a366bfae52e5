package zmtp

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// pair returns two connected clients of the given socket types.
func pair(t *testing.T, a, b ClientOptions) (*Client, *Client) {
	t.Helper()
	ca, cb := net.Pipe()
	type made struct {
		c   *Client
		err error
	}
	ch := make(chan made, 1)
	// net.Pipe has no buffer: both write their greeting first, so one side
	// needs a buffering wrapper.
	go func() {
		c, err := NewClient(context.Background(), newBuffered(ca), a)
		ch <- made{c, err}
	}()
	right, err := NewClient(context.Background(), newBuffered(cb), b)
	require.NoError(t, err)
	left := <-ch
	if left.err != nil {
		t.Fatal(left.err)
	}
	t.Cleanup(func() { left.c.Close(); right.Close() })
	return left.c, right
}

// buffered makes writes to a net.Pipe asynchronous, as a socket's are.
type buffered struct {
	net.Conn
	out chan []byte
}

func newBuffered(c net.Conn) *buffered {
	b := &buffered{Conn: c, out: make(chan []byte, 1024)}
	go func() {
		for p := range b.out {
			if _, err := c.Write(p); err != nil {
				return
			}
		}
	}()
	return b
}

func (b *buffered) Write(p []byte) (int, error) {
	b.out <- append([]byte(nil), p...)
	return len(p), nil
}

func (b *buffered) SetWriteDeadline(time.Time) error { return nil }
func (b *buffered) SetDeadline(t time.Time) error    { return b.Conn.SetReadDeadline(t) }

func TestClientExchange(t *testing.T) {
	req, rep := pair(t, ClientOptions{SocketType: "REQ", Identity: "me"}, ClientOptions{SocketType: "ROUTER"})
	if got := rep.Peer(); got != (Metadata{SocketType: "REQ", Identity: "me"}) {
		t.Fatalf("peer %+v", got)
	}
	big := make([]byte, 300<<10)
	go func() { _ = req.WriteMessage(nil, big) }()
	parts, err := rep.ReadMessage()
	if err != nil || len(parts) != 2 || len(parts[0]) != 0 || len(parts[1]) != len(big) {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
}

func TestClientAnswersPing(t *testing.T) {
	a, b := pair(t, ClientOptions{SocketType: "DEALER"}, ClientOptions{SocketType: "ROUTER",
		Heartbeat: 10 * time.Millisecond, HeartbeatTimeout: 5 * time.Second})
	go func() { _, _ = a.ReadMessage() }()
	done := make(chan error, 1)
	go func() { _, err := b.ReadMessage(); done <- err }()
	select { // alive through several beats, since a answers
	case err := <-done:
		t.Fatal(err)
	case <-time.After(100 * time.Millisecond):
	}
}

func TestClientGivesUpSilentPeer(t *testing.T) {
	_, b := pair(t, ClientOptions{SocketType: "DEALER"}, ClientOptions{SocketType: "ROUTER",
		Heartbeat: time.Millisecond, HeartbeatTimeout: 10 * time.Millisecond})
	if _, err := b.ReadMessage(); !errors.Is(err, ErrSilent) {
		t.Fatal(err)
	}
}

func TestClientHandshakeFailures(t *testing.T) {
	greet := AppendGreeting(nil)
	for name, c := range map[string]struct {
		say  []byte
		want error
	}{
		"http":           {[]byte("HTTP/1.1 400 Bad Request\r\n"), ErrNotZMTP},
		"no ready":       {AppendPing(greet[:64:64], 0, nil), ErrHandshake},
		"data first":     {AppendMessage(greet[:64:64], []byte("x")), ErrHandshake},
		"bad properties": {AppendCommand(greet[:64:64], CmdReady, []byte{1}), ErrCommand},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			f := newBuffered(far)
			defer far.Close()
			go func() { _, _ = far.Read(make([]byte, 1024)) }()
			_, _ = f.Write(c.say)
			_, err := NewClient(context.Background(), newBuffered(near), ClientOptions{SocketType: "SUB"})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestClientHandshakeIsBounded(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := NewClient(ctx, newBuffered(near), ClientOptions{SocketType: "SUB"}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	near, far = net.Pipe()
	defer far.Close()
	if _, err := NewClient(context.Background(), newBuffered(near),
		ClientOptions{SocketType: "SUB", HandshakeTimeout: time.Millisecond}); err == nil {
		t.Fatal("a silent peer was accepted")
	}
}

func TestClientPeerError(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	f := newBuffered(far)
	go func() { _, _ = far.Read(make([]byte, 1024)) }()
	_, _ = f.Write(AppendError(AppendGreeting(nil), "go away"))
	_, err := NewClient(context.Background(), newBuffered(near), ClientOptions{SocketType: "SUB"})
	var pe *PeerError
	if !errors.As(err, &pe) || pe.Reason != "go away" {
		t.Fatal(err)
	}
}
