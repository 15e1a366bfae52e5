package gossip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTimeout = 30 * time.Second

func key(b byte) []byte { return bytes.Repeat([]byte{b}, KeySize) }

// fast makes failures show in under two seconds, and still bears a busy machine.
var fast = Timing{
	Probe: 200 * time.Millisecond, ProbeTimeout: 100 * time.Millisecond, Suspicion: 2, Gossip: 20 * time.Millisecond,
	PushPull: time.Second, RejoinMin: 50 * time.Millisecond, RejoinMax: 500 * time.Millisecond,
	Leave: 200 * time.Millisecond,
}

// world is one roster shared by all its nodes, each with a loopback address of its own.
type world struct {
	t    *testing.T
	book *peer.Book
	rev  atomic.Uint64
	next byte

	isolated sync.Map
}

func newWorld(t *testing.T) *world {
	t.Helper()
	book, err := peer.OpenBook("")
	require.NoError(t, err)
	return &world{t: t, book: book, next: 1}
}

func (w *world) set(change func([]node.Entry) []node.Entry) {
	w.t.Helper()
	if _, err := w.book.Set(w.rev.Add(1), change(w.book.Entries())); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) add(e node.Entry) {
	w.t.Helper()
	w.set(func(all []node.Entry) []node.Entry { return append(all, e) })
}

func (w *world) remove(id node.ID) {
	w.t.Helper()
	w.set(func(all []node.Entry) (rest []node.Entry) {
		for _, e := range all {
			if e.ID != id {
				rest = append(rest, e)
			}
		}
		return rest
	})
}

// testNode is a port and its gossip.
type testNode struct {
	*Gossip
	w     *world
	ident *peer.Identity
	port  *peer.Port
	meta  atomic.Pointer[node.Meta]
	keys  [][]byte
	addr  string
	dead  bool
}

// wall stands between an isolated node and the others.
type wall struct {
	*peer.Port
	isolated *sync.Map // of node.ID
}

var errWall = errors.New("partitioned")

func (p *wall) Dial(ctx context.Context, id node.ID, proto string) (net.Conn, error) {
	_, us := p.isolated.Load(p.ID())
	_, them := p.isolated.Load(id)
	if us || them {
		return nil, errWall
	}
	return p.Port.Dial(ctx, id, proto)
}

// start opens a node at an address of its own and puts it on the roster.
func (w *world) start(id node.ID) *testNode {
	w.t.Helper()
	ident, err := peer.NewIdentity(id)
	require.NoError(w.t, err)
	w.next++
	n := &testNode{w: w, ident: ident, keys: [][]byte{key(1)}, addr: freeAddr(w.t, fmt.Sprintf("127.0.0.%d", w.next))}
	n.meta.Store(&node.Meta{Build: "test", Salt: "3008.3"})
	addr, err := node.ParseAddr(n.addr)
	require.NoError(w.t, err)
	w.add(node.Entry{ID: id, Addr: addr, Fingerprint: ident.Fingerprint()})
	n.open()
	w.t.Cleanup(n.stop)
	return n
}

// freeAddr finds a port number which is free for udp and tcp.
func freeAddr(t *testing.T, host string) string {
	t.Helper()
	for range 50 {
		u, err := net.ListenPacket("udp", host+":0")
		require.NoError(t, err)
		addr := u.LocalAddr().String()
		l, err := net.Listen("tcp", addr)
		_ = u.Close()
		if err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

// open starts port and gossip, at the same address each time.
func (n *testNode) open() {
	n.w.t.Helper()
	port, err := peer.NewPort(peer.Config{
		Listen: n.addr, Identity: n.ident, Roster: n.w.book, Logger: testLogger(n.w.t, n.ident.ID()),
	})
	require.NoError(n.w.t, err)
	require.NoError(n.w.t, port.Open(context.Background()))
	n.port, n.dead = port, false
	n.Gossip, err = New(Config{
		ID: n.ident.ID(), Port: &wall{Port: port, isolated: &n.w.isolated}, Keys: n.keys, Label: "6a9c7bde-uuid",
		Roster: n.w.book, Timing: fast,
		Meta: func() node.Meta { return *n.meta.Load() }, Logger: testLogger(n.w.t, n.ident.ID()),
	})
	require.NoError(n.w.t, err)
	require.NoError(n.w.t, n.Gossip.Open(context.Background(), nil))
}

// kill ends a node without a goodbye.
func (n *testNode) kill() {
	_ = n.Hand() // stop tells what it returned
	n.stop()
}

func (n *testNode) stop() {
	if n.dead {
		return
	}
	n.dead = true
	if err := errors.Join(n.Gossip.Close(), n.port.Close()); err != nil {
		n.w.t.Errorf("stop %s: %v", n.ident.ID(), err)
	}
}

// partition cuts the node off, or connects it again.
func (n *testNode) partition(up bool) {
	n.w.isolated.Delete(n.ident.ID())
	var roster Roster = n.w.book
	if up {
		n.w.isolated.Store(n.ident.ID(), true)
		roster = nobody{}
		for _, e := range n.w.book.Entries() {
			n.port.Revoke(e.Fingerprint)
		}
	}
	n.transport.filter.mu.Lock()
	n.transport.filter.roster, n.transport.filter.addrs = roster, nil
	n.transport.filter.mu.Unlock()
}

type nobody struct{}

func (nobody) Lookup(node.ID) (node.Entry, bool) { return node.Entry{}, false }
func (nobody) Entries() []node.Entry             { return nil }

// sees describes how a node sees all, as "a=alive b=dead".
func (n *testNode) sees() string {
	var out []string
	for _, m := range n.Members() {
		out = append(out, fmt.Sprintf("%s=%s", m.ID, m.State))
	}
	return strings.Join(out, " ")
}

func (n *testNode) mustSee(want string) {
	n.w.t.Helper()
	patience.WaitSettled(n.w.t, func() string {
		if got := n.sees(); got != want {
			return fmt.Sprintf("%s sees %q, want %q", n.ident.ID(), got, want)
		}
		return ""
	})
}

func testLogger(t *testing.T, id node.ID) *slog.Logger {
	if !testing.Verbose() {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})).With("self", id)
}
