package relay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
)

// receiver answers by what a request says.
type receiver struct {
	mu     sync.Mutex
	remote netip.AddrPort
	hangs  chan func() // gets what ends a request that hangs
}

func (r *receiver) ServeRelayed(_ context.Context, _ node.ID, remote netip.AddrPort, body []byte, to Hands) {
	r.mu.Lock()
	r.remote = remote
	r.mu.Unlock()
	switch {
	case bytes.Equal(body, []byte("drop")):
		to.Drop()
	case bytes.Equal(body, []byte("busy")):
		to.Pass(false)
	case bytes.Equal(body, []byte("down")):
		to.Pass(true)
	case bytes.Equal(body, []byte("hang")):
		if r.hangs != nil {
			r.hangs <- to.Drop
		}
	default:
		go to.Reply(append([]byte("re:"), body...))
	}
}

func (r *receiver) ServeSignIn(_ context.Context, _ node.ID, _ netip.AddrPort, body []byte, to Hands) {
	go to.Reply(append([]byte("signed in:"), body...))
}

func start(t testing.TB, rcv Receiver, member bool) *Client {
	t.Helper()
	srv := httptest.NewUnstartedServer(Handler(rcv, func(context.Context) (node.ID, bool) { return "a", member }, 4<<20))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	tr := srv.Client().Transport.(*http.Transport).Clone()
	tr.TLSClientConfig.InsecureSkipVerify = true
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr != "b:443" {
			return nil, errors.New("no such node")
		}
		return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
	}
	return NewClient(&http.Client{Transport: tr})
}

func TestRelay(t *testing.T) {
	rcv := &receiver{}
	c := start(t, rcv, true)
	remote := netip.MustParseAddrPort("192.0.2.7:1234")
	big := bytes.Repeat([]byte("x"), 3<<20)
	for _, body := range [][]byte{[]byte("hello"), {}, big} {
		got, err := c.Do(t.Context(), "b", body, remote)
		if err != nil || !bytes.Equal(got, append([]byte("re:"), body...)) {
			t.Errorf("%d bytes: %d bytes, %v", len(body), len(got), err)
		}
	}
	check.Equal(t, rcv.remote, remote, "remote")
	if _, err := c.Do(t.Context(), "b", []byte("drop"), remote); !errors.Is(err, ErrDropped) || Unsent(err) {
		t.Errorf("dropped: %v", err)
	}
	for text, want := range map[string]error{"busy": ErrBusy, "down": ErrMasterDown} {
		if _, err := c.Do(t.Context(), "b", []byte(text), remote); !Unsent(err) || !errors.Is(err, want) {
			t.Errorf("passed back, %s: %v", text, err)
		}
	}
	if _, err := c.Do(t.Context(), "c", []byte("x"), remote); !Unsent(err) {
		t.Errorf("unknown node: %v, unsent %t", err, Unsent(err))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Do(ctx, "b", []byte("hang"), remote); !errors.Is(err, context.DeadlineExceeded) || Unsent(err) {
		t.Errorf("hanging node: %v, unsent %t", err, Unsent(err))
	}
}

func TestClient_SignIn(t *testing.T) {
	c := start(t, &receiver{}, true)
	got, err := c.SignIn(t.Context(), "b", []byte("web1"), netip.AddrPort{})
	if err != nil || string(got) != "signed in:web1" {
		t.Errorf("answered %q, %v", got, err)
	}
	if _, err := c.SignIn(t.Context(), "b", make([]byte, MaxSignIn+1), netip.AddrPort{}); err == nil {
		t.Error("one that is too large was taken")
	}
	if _, err := start(t, &receiver{}, false).SignIn(t.Context(), "b", []byte("web1"), netip.AddrPort{}); err == nil {
		t.Error("a stranger's sign-in was taken")
	}
}

// What other nodes have relayed here is bounded in bytes until it is answered, even if the sender has given it up.
func TestHandler_Budget(t *testing.T) {
	rcv := &receiver{hangs: make(chan func(), 1)}
	c := start(t, rcv, true)
	ctx, cancel := context.WithCancel(t.Context())
	hung := make(chan error, 1)
	go func() {
		_, err := c.Do(ctx, "b", []byte("hang"), netip.AddrPort{})
		hung <- err
	}()
	end := <-rcv.hangs
	if _, err := c.Do(t.Context(), "b", make([]byte, 4<<20), netip.AddrPort{}); !Unsent(err) {
		t.Errorf("one that does not fit: %v", err)
	}
	if _, err := c.Do(t.Context(), "b", make([]byte, 1<<20), netip.AddrPort{}); err != nil {
		t.Errorf("one that fits: %v", err)
	}
	cancel()
	<-hung
	for range 3 {
		if _, err := c.Do(t.Context(), "b", make([]byte, 5<<20), netip.AddrPort{}); !Unsent(err) {
			t.Fatalf("a large one beside one that only its sender has given up: %v", err)
		}
	}
	end()
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		_, err := c.Do(t.Context(), "b", make([]byte, 5<<20), netip.AddrPort{})
		if err == nil {
			return
		}
		if !Unsent(err) || time.Now().After(late) {
			t.Fatalf("a large one alone: %v", err)
		}
	}
}

// A node that announces much and sends nothing keeps the room of the others free.
func TestHandler_BudgetPerNode(t *testing.T) {
	const limit = 8 << 20
	type sender struct{}
	h := Handler(&receiver{}, func(ctx context.Context) (node.ID, bool) {
		id, ok := ctx.Value(sender{}).(node.ID)
		return id, ok
	}, limit)
	call := func(from node.ID, body io.Reader, size int64) int {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), sender{}, from), http.MethodPost, Path, body)
		r.ContentLength = size
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	var writers []*io.PipeWriter
	answers := make(chan int)
	const tries = 6
	for range tries { // three times what there is
		body, w := io.Pipe()
		writers = append(writers, w)
		go func() { answers <- call("thief", body, limit/2) }()
	}
	for range tries - 1 { // whatever does not fit into its half
		check.Equal(t, <-answers, http.StatusServiceUnavailable, "more than its half")
	}
	if got := call("m2", bytes.NewReader(make([]byte, limit/2)), limit/2); got != http.StatusOK {
		t.Errorf("another node beside it: %d", got)
	}
	for _, w := range writers {
		w.CloseWithError(io.ErrUnexpectedEOF)
	}
	<-answers
	if got := call("thief", bytes.NewReader(make([]byte, limit/2)), limit/2); got != http.StatusOK {
		t.Errorf("when its own have ended: %d", got)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	c := start(t, &receiver{}, false)
	if _, err := c.Do(t.Context(), "b", []byte("x"), netip.AddrPort{}); err == nil {
		t.Fatal("a stranger's request was served")
	}
}

// endless is a reply that goes on.
type endless struct{ given *int64 }

func (e endless) Read(p []byte) (int, error) {
	*e.given += int64(len(p))
	return len(p), nil
}

// What a node says of the length of its replies, and how many it begins, takes no memory beyond its share.
func TestRepliesHaveABound(t *testing.T) {
	var given int64
	room := &budget{limit: maxReplies}
	for name, c := range map[string]struct {
		length, limit int64
	}{
		"too long": {MaxBody + 1, 0}, "without end": {-1, MaxBody + replyStep},
		"announced and not sent": {MaxBody, replyStep},
	} {
		given = 0
		r := io.Reader(endless{&given})
		if c.length == MaxBody {
			r = io.LimitReader(r, 10)
		}
		if reply, err := readReply(r, c.length, room); err == nil || given > c.limit || cap(reply) > 0 {
			t.Errorf("%s: %d bytes were read, %v", name, given, err)
		}
	}
	if held := room.held.Load(); held != 0 {
		t.Errorf("%d bytes are held", held)
	}
	room.held.Add(maxReplies)
	if _, err := readReply(strings.NewReader("hello"), 5, room); err == nil {
		t.Error("one more reply was read")
	}
	for _, length := range []int64{-1, replyStep + 7, 0} {
		text := strings.Repeat("x", int(max(length, 0)))
		if reply, err := readReply(strings.NewReader(text), length, &budget{limit: maxReplies}); err != nil ||
			string(reply) != text {
			t.Errorf("%d bytes: %d, %v", length, len(reply), err)
		}
	}
}
