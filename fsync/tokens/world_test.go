package tokens

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"saltclusterd/fsync/msgpack"
	"saltclusterd/gossip/node"
)

// world is a cluster without networks: nodes with cache directories and one clock, which tests move.
type world struct {
	t     testing.TB
	mu    sync.Mutex
	ahead time.Duration
	wakes []chan struct{}
	nodes map[node.ID]*testNode
	down  map[node.ID]bool
	old   map[node.ID]func(body []byte) error // members that are played by a test
}

type testNode struct {
	w      *world
	id     node.ID
	master Master
	state  string
	hold   chan struct{}
	store  *Store
}

var quick = Timing{
	Debounce: time.Millisecond, Scan: 20 * time.Millisecond, Check: 20 * time.Millisecond, Gone: 20 * time.Millisecond,
	Digest: 50 * time.Millisecond,
	Save:   5 * time.Millisecond, Retry: time.Millisecond, RetryMax: 20 * time.Millisecond, Push: 10 * time.Second,
}

func newWorld(t testing.TB, majors ...int) *world {
	t.Helper()
	w := &world{t: t, nodes: map[node.ID]*testNode{}, down: map[node.ID]bool{}}
	dir := t.TempDir()
	t.Cleanup(func() {
		for _, n := range w.nodes {
			n.close()
		}
	})
	for i, major := range majors {
		id := node.ID(rune('a' + i))
		n := &testNode{w: w, id: id, state: filepath.Join(dir, string(id), "state"), master: Master{
			Major: major, CacheDir: filepath.Join(dir, string(id), "cache"), UID: -1, GID: -1, Store: localfs, Driver: localfs,
		}}
		n.must(os.MkdirAll(filepath.Join(n.master.CacheDir, "tokens"), 0o700))
		w.mu.Lock()
		w.nodes[id] = n
		w.mu.Unlock()
		n.open()
	}
	w.changed()
	for _, n := range w.nodes {
		w.poll(string(n.id)+" knows the others", func() bool { return len(n.store.Status().Peers) == len(majors)-1 })
	}
	return w
}

func (n *testNode) must(err error) {
	n.w.t.Helper()
	if err != nil {
		n.w.t.Fatal(err)
	}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (w *world) changed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.wakes {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

type contextKey struct{}

func (n *testNode) Push(ctx context.Context, to node.ID, body []byte) error {
	n.w.mu.Lock()
	if old := n.w.old[to]; old != nil {
		n.w.mu.Unlock()
		return old(body)
	}
	var store *Store
	if target := n.w.nodes[to]; target != nil && !n.w.down[to] && !n.w.down[n.id] {
		store = target.store
	}
	n.w.mu.Unlock()
	if store == nil {
		return errors.New("cut off")
	}
	req := httptest.NewRequestWithContext(context.WithValue(ctx, contextKey{}, n.id), http.MethodPost, Path,
		bytes.NewReader(body))
	rec := httptest.NewRecorder()
	store.Handler().ServeHTTP(rec, req)
	if rec.Code != http.StatusOK {
		return errors.New(rec.Body.String())
	}
	return nil
}

func (n *testNode) members() (out []node.ID) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	for id := range n.w.nodes {
		if id != n.id {
			out = append(out, id)
		}
	}
	for id := range n.w.old {
		out = append(out, id)
	}
	return out
}

func (n *testNode) watch(context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	n.w.mu.Lock()
	n.w.wakes = append(n.w.wakes, c)
	n.w.mu.Unlock()
	return c
}

func (n *testNode) open() {
	n.w.t.Helper()
	s, err := New(Config{
		Master: n.master, StateDir: n.state, Members: n.members, Changed: n.watch, Peers: n, Now: n.w.now, Timing: quick,
		Hold: n.hold,
		From: func(ctx context.Context) (node.ID, bool) { id, ok := ctx.Value(contextKey{}).(node.ID); return id, ok },
	})
	n.must(err)
	n.must(s.Open(context.Background()))
	n.w.mu.Lock()
	n.store = s
	n.w.mu.Unlock()
	if s.off == "" && n.hold == nil {
		<-s.ready
	}
}

func (n *testNode) close() {
	n.w.mu.Lock()
	s := n.store
	n.store = nil
	n.w.mu.Unlock()
	if s != nil {
		n.must(s.Close())
	}
}

// secret makes a token of its own for the test.
func secret(n int) string { return fmt.Sprintf("%064x", 0xabc0+n) }

// tokenData is what Salt stores of a token.
func tokenData(token string, expire time.Time) []byte {
	out := msgpack.AppendShort(msgpack.AppendMapHead(nil, 3), "expire")
	out = binary.BigEndian.AppendUint64(append(out, 0xcb),
		math.Float64bits(float64(expire.Unix())+float64(expire.Nanosecond())/1e9))
	out = msgpack.AppendShort(msgpack.AppendShort(out, "name"), "fred")
	out = append(msgpack.AppendShort(out, "token"), 0xd9, byte(len(token)))
	return append(out, token...)
}

func (n *testNode) path(token string) string {
	return filepath.Join(n.master.CacheDir, dir, newLayout(n.master.Major).file(token))
}

// mint writes what a master writes that makes a token.
func (n *testNode) mint(token string, life time.Duration) []byte {
	n.w.t.Helper()
	at := n.w.now().Add(life)
	data := tokenData(token, at)
	temp := filepath.Join(n.master.CacheDir, "tokens", token+".tmp")
	n.must(os.WriteFile(temp, newLayout(n.master.Major).wrap(data, at.Unix()), 0o600))
	n.must(os.Rename(temp, n.path(token)))
	return data
}

// has returns the data of a token that the node's master would find.
func (n *testNode) has(token string) []byte {
	raw, err := os.ReadFile(n.path(token))
	if err != nil {
		return nil
	}
	return newLayout(n.master.Major).unwrap(raw)
}

func (w *world) poll(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("never: %s", what)
		}
	}
}

// everywhere waits until all masters have the same of a token.
func (w *world) everywhere(token string, data []byte) {
	w.t.Helper()
	for _, n := range w.nodes {
		w.poll(fmt.Sprintf("%s has %d bytes of %s", n.id, len(data), token[60:]),
			func() bool { return bytes.Equal(n.has(token), data) })
	}
}
