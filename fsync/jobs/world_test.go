package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/gossip/node"
)

// world is some nodes whose stores talk to each other without a network.
type world struct {
	t     testing.TB
	mu    sync.Mutex
	nodes map[node.ID]*testNode
	down  map[node.ID]bool
	old   map[node.ID]func(body []byte) []byte // members that are played by a test
	sent  map[byte]int                         // calls by kind
	bytes int
	next  int
}

type testNode struct {
	w       *world
	id      node.ID
	dir     string
	store   *Store
	cfg     Config
	changed chan struct{}
}

type fromKey struct{}

func newWorld(t testing.TB) *world {
	return &world{t: t, nodes: map[node.ID]*testNode{}, down: map[node.ID]bool{}, sent: map[byte]int{}}
}

// add makes a node; change may alter its configuration.
func (w *world) add(id node.ID, change func(*Config)) *testNode {
	n := &testNode{w: w, id: id, dir: w.t.TempDir(), changed: make(chan struct{}, 1)}
	n.cfg = Config{
		Self: id, StateDir: w.t.TempDir(),
		Master:  Master{CacheDir: n.dir, UID: -1, GID: -1, HashType: "sha256", JobCache: localCache, Keep: 24 * time.Hour},
		Members: func() []node.ID { return w.others(id) }, Replicas: func(string) []node.ID { return w.all() },
		Changed: func(context.Context) <-chan struct{} { return n.changed }, Peers: testPeers{n},
		From: func(ctx context.Context) (node.ID, bool) { id, ok := ctx.Value(fromKey{}).(node.ID); return id, ok },
		Timing: Timing{
			Poll: 20 * time.Millisecond, Linger: 5 * time.Millisecond, Quiet: 30 * time.Millisecond,
			Scan:   100 * time.Millisecond,
			Digest: time.Hour, Claim: 50 * time.Millisecond, Retry: 10 * time.Millisecond, RetryMax: 20 * time.Millisecond,
			Rest: 50 * time.Millisecond,
		},
	}
	if change != nil {
		change(&n.cfg)
	}
	w.mu.Lock()
	w.nodes[id] = n
	w.mu.Unlock()
	n.open()
	w.t.Cleanup(func() { n.close() })
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.nodes {
		select {
		case o.changed <- struct{}{}:
		default:
		}
	}
	return n
}

func (n *testNode) open() {
	s, err := New(n.cfg)
	if err == nil {
		err = s.Open(context.Background())
	}
	if err != nil {
		n.w.t.Fatal(err)
	}
	n.w.mu.Lock()
	n.store = s
	n.w.mu.Unlock()
}

func (n *testNode) close() {
	n.w.mu.Lock()
	s := n.store
	n.w.mu.Unlock()
	if err := s.Close(); err != nil {
		n.w.t.Error(err)
	}
}

func (w *world) all() []node.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.nodes))
}

func (w *world) others(id node.ID) []node.ID {
	members := slices.DeleteFunc(w.all(), func(o node.ID) bool { return o == id })
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(members, slices.Sorted(maps.Keys(w.old))...)
}

func (w *world) setDown(id node.ID, down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down[id] = down
}

type testPeers struct{ n *testNode }

func (p testPeers) Call(ctx context.Context, to node.ID, body []byte, limit int64) ([]byte, error) {
	w := p.n.w
	w.mu.Lock()
	peer, down := w.nodes[to], w.down[to] || w.down[p.n.id]
	var s *Store
	if peer != nil {
		s = peer.store
	}
	w.sent[body[len(magic)+1]]++
	w.bytes += len(body)
	old := w.old[to]
	w.mu.Unlock()
	if old != nil {
		return old(body), nil
	}
	if s == nil || down {
		return nil, errors.New("unreachable")
	}
	r := httptest.NewRequestWithContext(context.WithValue(ctx, fromKey{}, p.n.id), http.MethodPost, Path,
		bytes.NewReader(body))
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, r)
	if rec.Code != http.StatusOK {
		return nil, fmt.Errorf("%d %s", rec.Code, rec.Body)
	}
	if int64(rec.Body.Len()) > limit {
		return nil, errors.New("too long")
	}
	return rec.Body.Bytes(), nil
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
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			n.w.t.Fatal(err)
		}
		if err := os.WriteFile(path+".new", f.content, 0o644); err != nil {
			n.w.t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			n.w.t.Fatal(err)
		}
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
	eventually(t, func() error {
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

// eventually waits for a condition.
func eventually(t testing.TB, ok func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if err = ok(); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal(err)
}

// apart waits until nodes that cannot be reached have found out, with nothing left to send in vain.
func apart(t testing.TB, nodes ...*testNode) {
	t.Helper()
	eventually(t, func() error {
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
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
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
	eventually(w.t, func() error {
		for _, id := range w.all() {
			for _, p := range w.nodes[id].store.Status().Peers {
				if !w.down[p.ID] && !w.down[id] && (p.Waiting > 0 || p.Dirty > 0 || p.All || p.Err != "") {
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
