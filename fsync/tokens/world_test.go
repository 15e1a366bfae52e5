package tokens

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"saltclusterd/fsync/msgpack"
	"saltclusterd/fsync/replica/replicatest"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// world is a cluster without networks: nodes with cache directories and one clock, which tests move.
type world struct {
	*replicatest.Net
	t     testing.TB
	mu    sync.Mutex
	ahead time.Duration
	nodes map[node.ID]*testNode
}

type testNode struct {
	w      *world
	id     node.ID
	master Master
	state  string
	store  *Store
}

var quick = Timing{
	Debounce: time.Millisecond, Scan: 20 * time.Millisecond, Check: 20 * time.Millisecond, Gone: 20 * time.Millisecond,
}

func newWorld(t testing.TB, majors ...int) *world {
	t.Helper()
	w := &world{Net: replicatest.NewNet(), t: t, nodes: map[node.ID]*testNode{}}
	dir := t.TempDir()
	t.Cleanup(func() {
		for _, n := range w.nodes {
			n.close()
		}
	})
	for i, major := range majors {
		id := node.ID(rune('a' + i))
		own := filepath.Join(dir, string(id))
		n := &testNode{w: w, id: id, state: filepath.Join(own, "state"), master: localMaster(major, own)}
		n.must(os.MkdirAll(filepath.Join(n.master.CacheDir, "tokens"), 0o700))
		w.nodes[n.id] = n
		n.open()
	}
	for _, n := range w.nodes {
		w.poll(string(n.id)+" knows the others", func() bool { return len(n.store.Peers()) == len(majors)-1 })
	}
	return w
}

func localMaster(major int, dir string) Master {
	return Master{Major: major, CacheDir: filepath.Join(dir, "cache"), UID: -1, GID: -1, Store: localfs, Driver: localfs}
}

func (n *testNode) must(err error) {
	n.w.t.Helper()
	require.NoError(n.w.t, err)
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (n *testNode) open() {
	n.w.t.Helper()
	cfg := Config{Config: n.w.Config(n.id, n.state), Master: n.master, Timing: quick}
	cfg.Now = n.w.now
	s, err := New(cfg)
	n.must(err)
	n.must(s.Open(context.Background()))
	n.store = s
	n.w.poll("the first scan", s.Scanned)
	n.w.Join(n.id, s.Handler())
}

func (n *testNode) close() {
	if n.store != nil {
		n.w.Join(n.id, nil)
		n.must(n.store.Close())
		n.store = nil
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
	patience.WaitFor(w.t, what, ok)
}

// everywhere waits until all masters have the same of a token.
func (w *world) everywhere(token string, data []byte) {
	w.t.Helper()
	for _, n := range w.nodes {
		w.poll(fmt.Sprintf("%s has %d bytes of %s", n.id, len(data), token[60:]),
			func() bool { return bytes.Equal(n.has(token), data) })
	}
}
