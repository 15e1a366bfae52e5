package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/fsync/replica"
	"saltclusterd/fsync/replica/replicatest"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// world is some nodes whose stores talk to each other without a network.
type world struct {
	*replicatest.Net
	t     testing.TB
	mu    sync.Mutex
	nodes map[node.ID]*testNode
	down  map[node.ID]bool
	next  int
}

type testNode struct {
	w     *world
	id    node.ID
	dir   string
	store *Store
	cfg   Config
}

func newWorld(t testing.TB) *world {
	return &world{Net: replicatest.NewNet(), t: t, nodes: map[node.ID]*testNode{}, down: map[node.ID]bool{}}
}

// quick is a configuration for tests.
func quick(cfg replica.Config, self node.ID, dir string) Config {
	cfg.Pace.Digest, cfg.Pace.Linger = time.Hour, 5*time.Millisecond
	return Config{
		Config: cfg, Self: self,
		Master: Master{CacheDir: dir, UID: -1, GID: -1, HashType: "sha256", JobCache: localCache, Keep: 24 * time.Hour},
		Timing: Timing{
			Poll: 20 * time.Millisecond, Quiet: 30 * time.Millisecond, Scan: 100 * time.Millisecond, Claim: 50 * time.Millisecond,
			Rest: 50 * time.Millisecond,
		},
	}
}

// add makes a node; change may alter its configuration.
func (w *world) add(id node.ID, change func(*Config)) *testNode {
	n := &testNode{w: w, id: id, dir: w.t.TempDir()}
	n.cfg = quick(w.Config(id, w.t.TempDir()), id, n.dir)
	n.cfg.Replicas = func(string) []node.ID { return w.all() }
	if change != nil {
		change(&n.cfg)
	}
	w.mu.Lock()
	w.nodes[id] = n
	w.mu.Unlock()
	n.open()
	w.t.Cleanup(func() { n.close() })
	return n
}

func (n *testNode) open() {
	s, err := New(n.cfg)
	if err == nil {
		err = s.Open(context.Background())
	}
	require.NoError(n.w.t, err)
	n.store = s
	n.w.Join(n.id, s.Handler())
}

func (n *testNode) close() {
	check.NoError(n.w.t, n.store.Close())
}

func (w *world) all() []node.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.nodes))
}

func (w *world) setDown(id node.ID, down bool) {
	w.down[id] = down
	w.Cut(id, down)
}

// remove takes a node out of the cluster.
func (w *world) remove(id node.ID) {
	w.mu.Lock()
	delete(w.nodes, id)
	w.mu.Unlock()
	w.Leave(id)
}

// jid makes a job id that no other in this test has.
func (w *world) jid() string {
	w.next++
	return fmt.Sprintf("20260102%012d", w.next)
}

// python writes as a stock master does: directly, directory first.
func (n *testNode) python(jid, name string, content []byte) string {
	n.w.t.Helper()
	dir := n.store.disk.path(jid)
	for _, f := range []struct {
		name    string
		content []byte
	}{{jidFile, []byte(jid)}, {name, content}} {
		path := filepath.Join(dir, f.name)
		require.NoError(n.w.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(n.w.t, os.WriteFile(path+".new", f.content, 0o644))
		require.NoError(n.w.t, os.Rename(path+".new", path))
	}
	return dir
}

// publish writes what a master writes before it publishes, and tells the store.
func (n *testNode) publish(jid string, minions ...string) {
	n.python(jid, minionsFile, list(minions...))
	n.python(jid, loadFile, load(jid, false))
	n.store.Published(jid)
}

// ret stores a return as the journal's consumer does.
func (n *testNode) ret(jid, minion, what string) {
	data := ret(what)
	n.python(jid, minion+"/"+returnFile, data)
	n.store.Stored(jid, minion, Return{Data: data}, false)
}

func list(ids ...string) []byte {
	b := msgp.AppendArrayHeader(nil, uint32(len(ids)))
	for _, id := range ids {
		b = msgp.AppendString(b, id)
	}
	return b
}

func load(jid string, fromReturn bool) []byte {
	if fromReturn {
		return dict("jid", jid, "return", true, "id", "m1", "some", "more of what makes it longer than the other one is")
	}
	return dict("jid", jid, "fun", "test.ping", "tgt", "*", "user", "root", "arg", []any{})
}

func ret(what string) []byte { return dict("return", what, "retcode", 0, "success", true) }

// dict is a map with its entries in that order.
func dict(pairs ...any) []byte {
	b := msgp.AppendMapHeader(nil, uint32(len(pairs)/2))
	for _, v := range pairs {
		var err error
		if b, err = msgp.AppendIntf(b, v); err != nil {
			panic(err)
		}
	}
	return b
}

// content reads all files of a job, by name.
func (n *testNode) content(jid string) map[string]string {
	out := map[string]string{}
	dir := n.store.disk.path(jid)
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // it may come and go
		}
		raw, _ := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[name] = string(raw)
		return nil
	})
	return out
}

// same waits until all nodes have what the first has of a job.
func same(t *testing.T, jid string, files int, nodes ...*testNode) {
	t.Helper()
	patience.WaitNil(t, func() error {
		want := nodes[0].content(jid)
		if len(want) != files {
			return fmt.Errorf("%s has %d files of %s: %v", nodes[0].id, len(want), jid, slices.Sorted(maps.Keys(want)))
		}
		for _, n := range nodes[1:] {
			if got := n.content(jid); !maps.Equal(got, want) {
				return fmt.Errorf("%s has %v of %s, not %v", n.id, slices.Sorted(maps.Keys(got)), jid,
					slices.Sorted(maps.Keys(want)))
			}
		}
		return nil
	})
}

// apart waits until nodes that cannot be reached have found out, with nothing left to send in vain.
func apart(t testing.TB, nodes ...*testNode) {
	t.Helper()
	patience.WaitNil(t, func() error {
		for _, n := range nodes {
			for _, p := range n.store.Status().Peers {
				if p.Err == "" || p.Waiting > 0 {
					return fmt.Errorf("%s: %+v", n.id, p)
				}
			}
		}
		return nil
	})
}

// later does something again until it shows in a file's time, as far as jobs tell times apart.
func later(t testing.TB, do func(), path string) {
	t.Helper()
	before, err := os.Stat(path)
	require.NoError(t, err)
	patience.WaitNil(t, func() error {
		do()
		info, err := os.Stat(path)
		if err == nil && milli(info.ModTime().UnixNano()) == milli(before.ModTime().UnixNano()) {
			err = errors.New("the same millisecond")
		}
		return err
	})
}

// known is what the index knows of a job.
func (x *index) known(jid string) (job, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if j := x.jobs[jid]; j != nil {
		return *j, true
	}
	return job{}, false
}

// restart closes all nodes, lets something happen meanwhile, and opens them.
func (w *world) restart(meanwhile func()) {
	for _, id := range w.all() {
		w.nodes[id].close()
	}
	meanwhile()
	for _, id := range w.all() {
		w.nodes[id].open()
	}
}

// quiet waits until nothing waits in any queue and all have been compared.
func (w *world) quiet() {
	w.t.Helper()
	still := 0
	patience.WaitNil(w.t, func() error {
		for _, id := range w.all() {
			for _, p := range w.nodes[id].store.Status().Peers {
				if !w.down[p.ID] && !w.down[id] && (p.Waiting > 0 || p.Dirty > 0 || p.All || p.Busy || p.Err != "") {
					still = 0
					return fmt.Errorf("%s: %+v", id, p)
				}
			}
		}
		if still++; still < 20 {
			return errors.New("not long enough")
		}
		return nil
	})
}
