package datacache

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"saltclusterd/fsync/msgpack"
	"saltclusterd/fsync/replica"
	"saltclusterd/fsync/replica/replicatest"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// tb is what testing.T and rapid.T have in common.
type tb interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// world is a cluster without networks: nodes with cache directories, and what consensus would know.
type world struct {
	*replicatest.Net
	t      tb
	kind   Kind
	scan   time.Duration
	pace   replica.Pace
	mu     sync.Mutex
	clock  uint64
	behind time.Duration     // by how much the clock was put back
	keys   map[string]string // accepted ones
	other  map[string]bool   // known, but not accepted
	lives  map[string]uint64 // how often a key was taken away
	tick   func()            // when somebody asks for the time; nil: nothing
	nodes  map[node.ID]*testNode
}

type testNode struct {
	w      *world
	id     node.ID
	master Master
	state  string
	store  *Store
	comes  func(id string) // Config.PillarComes
}

func newWorld(t tb) *world {
	return &world{Net: replicatest.NewNet(), t: t, scan: 50 * time.Millisecond, pace: replicatest.Quick(), keys: map[string]string{}, other: map[string]bool{},
		lives: map[string]uint64{}, nodes: map[node.ID]*testNode{}}
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
	w.Wake()
}

func master(major int, dir string) Master {
	return Master{Major: major, CacheDir: dir, UID: -1, GID: -1, DataCache: true, Driver: localfs}
}

// add makes a node whose master has a version of Salt, and opens it.
func (w *world) add(id node.ID, major int, dir string) *testNode {
	w.t.Helper()
	n := &testNode{w: w, id: id, master: master(major, filepath.Join(dir, "cache")), state: filepath.Join(dir, "state")}
	require.NoError(w.t, os.MkdirAll(n.master.CacheDir, 0o755))
	w.mu.Lock()
	w.nodes[id] = n
	w.mu.Unlock()
	n.open()
	return n
}

// config is that of a store with the keys and the clock of a world.
func (w *world) config(cfg replica.Config, m Master) Config {
	cfg.Pace = w.pace
	return Config{Config: cfg, Kind: w.kind, Master: m, Keys: w, Scan: w.scan,
		Clock: Clock{Now: w.now, Observe: func(ts uint64) error {
			w.ticks()
			if ts > uint64(time.Now().Add(time.Hour).UnixMilli())<<stampBits {
				return errors.New("ahead")
			}
			return nil
		}}}
}

func (n *testNode) open() {
	n.w.t.Helper()
	cfg := n.w.config(n.w.Config(n.id, n.state), n.master)
	cfg.PillarComes = n.comes
	s, err := New(cfg)
	if err == nil {
		err = s.Open(context.Background())
	}
	require.NoError(n.w.t, err)
	n.store = s
	n.w.poll("the first scan", func() bool { return s.Off() != "" || s.Scanned() })
	n.w.Join(n.id, s.Handler())
}

func (n *testNode) close() {
	if n.store == nil {
		return
	}
	n.w.Join(n.id, nil)
	err := n.store.Close()
	n.store = nil
	require.NoError(n.w.t, err)
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
	require.NoError(n.w.t, err)
}

// has returns grains and pillar that the master of the node would read.
func (n *testNode) has(id string) (grains, pillar []byte) {
	root, err := os.OpenRoot(n.master.CacheDir)
	require.NoError(n.w.t, err)
	defer root.Close()
	l := newLayout(n.w.kind, n.master)
	files, err := read(root, l.names(id))
	require.NoError(n.w.t, err)
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
	patience.WaitFor(w.t, what, ok)
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
	w = newWorld(t)
	w.kind = k
	return w.addThree(t)
}

// threeAtRest is threeOf mines, where only the test reads the disk.
func threeAtRest(t *testing.T) (w *world, a, b, c *testNode) {
	w = newWorld(t)
	w.kind, w.scan, w.pace.Digest = Mine, time.Hour, time.Hour
	return w.addThree(t)
}

func (w *world) addThree(t *testing.T) (_ *world, a, b, c *testNode) {
	dir := t.TempDir()
	t.Cleanup(w.close) // before the directory goes
	return w, w.add("a", 3006, dir+"/a"), w.add("b", 3007, dir+"/b"), w.add("c", 3008, dir+"/c")
}
