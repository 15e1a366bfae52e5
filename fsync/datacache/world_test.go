package datacache

import (
	"bytes"
	"context"
	"errors"
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

// tb is what testing.T and rapid.T have in common.
type tb interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// world is a cluster without networks: nodes with cache directories, and what consensus would know.
type world struct {
	t      tb
	kind   Kind
	mu     sync.Mutex
	clock  uint64
	behind time.Duration     // by how much the clock was put back
	keys   map[string]string // accepted ones
	other  map[string]bool   // known, but not accepted
	lives  map[string]uint64 // how often a key was taken away
	wakes  []chan struct{}
	tick   func() // when somebody asks for the time; nil: nothing
	nodes  map[node.ID]*testNode
	down   map[node.ID]bool
	old    map[node.ID]func(body []byte) error // members that are played by a test
}

type testNode struct {
	w      *world
	id     node.ID
	master Master
	state  string
	hold   chan struct{}
	store  *Store
}

func newWorld(t tb) *world {
	return &world{t: t, keys: map[string]string{}, other: map[string]bool{}, lives: map[string]uint64{},
		nodes: map[node.ID]*testNode{}, down: map[node.ID]bool{}}
}

func (w *world) now() uint64 {
	w.ticks()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = max(w.clock+1, uint64(time.Now().UnixMilli())<<stampBits)
	return w.clock - uint64(w.behind.Milliseconds())<<stampBits
}

// ticks does once what a test wants to come between.
func (w *world) ticks() {
	w.mu.Lock()
	tick := w.tick
	w.tick = nil
	w.mu.Unlock()
	if tick != nil {
		tick()
	}
}

func (w *world) Accepted(id string) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pub, ok := w.keys[id]
	return pub, ok
}

func (w *world) Known(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keys[id] != "" || w.other[id]
}

func (w *world) Life(id string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lives[id]
}

// setKey gives a minion an accepted key, or takes it away.
func (w *world) setKey(id, pub string) {
	w.mu.Lock()
	if w.keys[id] = pub; pub == "" {
		delete(w.keys, id)
		if !w.other[id] {
			w.lives[id]++
		}
	}
	w.mu.Unlock()
	w.changed()
}

func (w *world) changed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.wakes {
		signal(c)
	}
}

type contextKey struct{}

func (n *testNode) Push(ctx context.Context, to node.ID, body []byte) error {
	n.w.mu.Lock()
	if old := n.w.old[to]; old != nil {
		n.w.mu.Unlock()
		return old(body)
	}
	target := n.w.nodes[to]
	var store *Store
	if target != nil && !n.w.down[to] && !n.w.down[n.id] {
		store = target.store
	}
	n.w.mu.Unlock()
	if store == nil {
		return errors.New("cut off")
	}
	ctx = context.WithValue(ctx, contextKey{}, n.id)
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, n.w.kind.Path(), bytes.NewReader(body))
	rec := httptest.NewRecorder()
	store.Handler().ServeHTTP(rec, req)
	if rec.Code != http.StatusOK {
		return errors.New(rec.Body.String())
	}
	return nil
}

func (n *testNode) members() []node.ID {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	var out []node.ID
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

func (n *testNode) watch(ctx context.Context) <-chan struct{} {
	in, out := make(chan struct{}, 1), make(chan struct{})
	n.w.mu.Lock()
	n.w.wakes = append(n.w.wakes, in)
	n.w.mu.Unlock()
	go func() {
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case <-in:
			}
			select {
			case <-ctx.Done():
				return
			case out <- struct{}{}:
			}
		}
	}()
	return out
}

var quick = Timing{
	Scan: 50 * time.Millisecond, Digest: 50 * time.Millisecond, Settle: time.Millisecond, Save: 5 * time.Millisecond,
	Retry: time.Millisecond, RetryMax: 20 * time.Millisecond, Push: 10 * time.Second,
}

func master(major int, dir string) Master {
	return Master{Major: major, CacheDir: dir, UID: -1, GID: -1, DataCache: true, Driver: localfs}
}

// add makes a node whose master has a version of Salt, and opens it.
func (w *world) add(id node.ID, major int, dir string) *testNode {
	w.t.Helper()
	n := &testNode{w: w, id: id, master: master(major, filepath.Join(dir, "cache")), state: filepath.Join(dir, "state")}
	if err := os.MkdirAll(n.master.CacheDir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.nodes[id] = n
	w.mu.Unlock()
	n.open()
	w.changed()
	return n
}

func (n *testNode) open() {
	n.w.t.Helper()
	s, err := New(Config{
		Kind: n.w.kind, Master: n.master, StateDir: n.state, Keys: n.w, Members: n.members, Changed: n.watch, Peers: n,
		From: func(ctx context.Context) (node.ID, bool) { id, ok := ctx.Value(contextKey{}).(node.ID); return id, ok },
		Clock: Clock{Now: n.w.now, Observe: func(ts uint64) error {
			n.w.ticks()
			if ts > uint64(time.Now().Add(time.Hour).UnixMilli())<<stampBits {
				return errors.New("ahead")
			}
			return nil
		}},
		Timing: quick, Hold: n.hold,
	})
	if err == nil {
		err = s.Open(context.Background())
	}
	if err != nil {
		n.w.t.Fatal(err)
	}
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
	if s == nil {
		return
	}
	if err := s.Close(); err != nil {
		n.w.t.Fatal(err)
	}
}

func (w *world) close() {
	for _, n := range w.nodes {
		n.close()
	}
}

// texts is a msgpack map of one text to another, as Salt writes it.
func texts(key, value string) []byte {
	return msgpack.AppendShort(msgpack.AppendShort([]byte{0x81}, key), value)
}

// stock writes what a master writes that carries out _pillar.
func (n *testNode) stock(id string, grains, pillar []byte) {
	n.w.t.Helper()
	if n.master.Major < splitSince {
		body := append(msgpack.AppendShort([]byte{0x82}, "grains"), grains...)
		n.file("minions/"+id+"/data.p", append(msgpack.AppendShort(body, "pillar"), pillar...))
		return
	}
	n.file("pillar/"+id+".p", pillar)
	n.file("grains/"+id+".p", grains)
}

func (n *testNode) file(name string, content []byte) {
	n.w.t.Helper()
	path := filepath.Join(n.master.CacheDir, name)
	err := errors.Join(
		os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path+".tmp", content, 0o600), os.Rename(path+".tmp", path),
	)
	if err != nil {
		n.w.t.Fatal(err)
	}
}

// has returns grains and pillar that the master of the node would read.
func (n *testNode) has(id string) (grains, pillar []byte) {
	root, err := os.OpenRoot(n.master.CacheDir)
	if err != nil {
		n.w.t.Fatal(err)
	}
	defer root.Close()
	l := newLayout(n.w.kind, n.master)
	files, err := read(root, l.names(id))
	if err != nil {
		n.w.t.Fatal(err)
	}
	d, err := l.parse(id, files)
	if err != nil {
		return nil, nil
	}
	for _, p := range d.pillars {
		if p.env == "" {
			pillar = p.raw
		}
	}
	return d.main, pillar
}

func (w *world) poll(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			w.t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// everywhere waits until all masters have the same of a minion.
func (w *world) everywhere(id string, grains, pillar []byte) {
	w.t.Helper()
	for _, n := range w.nodes {
		w.poll(string(n.id)+" has "+id, func() bool {
			g, p := n.has(id)
			return bytes.Equal(g, grains) && bytes.Equal(p, pillar)
		})
	}
}

func three(t *testing.T) (w *world, a, b, c *testNode) { return threeOf(t, Data) }

// threeOf makes a cluster of all versions for one kind of data.
func threeOf(t *testing.T, k Kind) (w *world, a, b, c *testNode) {
	dir := t.TempDir()
	w = newWorld(t)
	w.kind = k
	t.Cleanup(w.close) // before the directory goes
	return w, w.add("a", 3006, dir+"/a"), w.add("b", 3007, dir+"/b"), w.add("c", 3008, dir+"/c")
}
