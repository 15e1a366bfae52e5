package upstream

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/zmtp"
)

// fakeMaster is a scripted peer: each message of each connection goes to handle, which may answer through reply.
type fakeMaster struct {
	t      testing.TB
	typ    string
	handle func(c *fakeConn, body []byte)
	ln     net.Listener
	wg     sync.WaitGroup

	mu      sync.Mutex
	conns   map[*fakeConn]struct{}
	total   int
	stopped bool // a handshake that ends after the cut is not served either: nobody would close its connection
}

type fakeConn struct {
	*zmtp.Client
	n int // 1 for the first connection
}

func (c *fakeConn) reply(body []byte) { _ = c.WriteMessage(nil, body) }

func echo(c *fakeConn, body []byte) { c.reply(body) }

func startFake(t testing.TB, addr string, handle func(c *fakeConn, body []byte)) *fakeMaster {
	t.Helper()
	return startFakeType(t, "ROUTER", addr, handle)
}

func startFakeType(t testing.TB, typ, addr string, handle func(c *fakeConn, body []byte)) *fakeMaster {
	t.Helper()
	f := &fakeMaster{t: t, typ: typ, handle: handle, conns: map[*fakeConn]struct{}{}}
	var err error
	if f.ln, err = net.Listen("tcp", addr); err != nil {
		t.Fatal(err)
	}
	f.wg.Go(f.accept)
	t.Cleanup(f.stop)
	return f
}

func (f *fakeMaster) addr() string { return f.ln.Addr().String() }

func (f *fakeMaster) stop() {
	f.ln.Close()
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	f.cut()
	f.wg.Wait()
}

// cut closes all connections.
func (f *fakeMaster) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.Close()
	}
}

func (f *fakeMaster) count() (open, total int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.conns), f.total
}

func (f *fakeMaster) accept() {
	for {
		raw, err := f.ln.Accept()
		if err != nil {
			return
		}
		f.wg.Go(func() { f.serve(raw) })
	}
}

func (f *fakeMaster) serve(raw net.Conn) {
	z, err := zmtp.NewClient(context.Background(), raw, zmtp.ClientOptions{
		SocketType: f.typ, Limits: zmtp.Limits{MaxFrame: 1 << 30, MaxMessage: 1 << 30},
	})
	if err != nil {
		return
	}
	defer z.Close()
	f.mu.Lock()
	if f.stopped {
		f.mu.Unlock()
		return
	}
	f.total++
	c := &fakeConn{z, f.total}
	f.conns[c] = struct{}{}
	f.mu.Unlock()
	defer func() { f.mu.Lock(); delete(f.conns, c); f.mu.Unlock() }()
	if f.typ == "PUB" {
		f.handle(c, nil)
	}
	for {
		parts, err := z.ReadMessage()
		if err != nil {
			return
		}
		if f.typ == "ROUTER" && (len(parts) != 2 || len(parts[0]) != 0) {
			f.t.Errorf("request of %d parts", len(parts))
			return
		}
		f.handle(c, parts[len(parts)-1])
	}
}

func openReq(t testing.TB, cfg ReqConfig) *ReqClient {
	t.Helper()
	c := NewReqClient(cfg)
	require.NoError(t, c.Open(context.Background()))
	t.Cleanup(func() { c.Close() })
	return c
}

// eventually polls until ok, which reports what it last saw.
func eventually(t testing.TB, ok func() (bool, any)) {
	t.Helper()
	patience.WaitNil(t, func() error {
		good, seen := ok()
		if !good {
			return fmt.Errorf("last seen: %+v", seen)
		}
		return nil
	})
}

func waitUp(t testing.TB, c *ReqClient, want bool) {
	t.Helper()
	eventually(t, func() (bool, any) { return c.Up() == want, c.Stats() })
}
