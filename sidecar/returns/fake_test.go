package returns

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/eventbus"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltwire"
)

// world is what a service talks to: bus, Python, keys and other nodes.
type world struct {
	t   *testing.T
	dir string

	mu         sync.Mutex
	busDown    bool
	busHangs   bool
	fired      []string // tags the master has taken
	queued     []string
	pyDown     bool
	pyBack     bool             // it is there again when it was found down
	pyErr      map[string]error // by minion
	pyDoes     func(minion string)
	pyGot      []string // minions
	standing   map[node.ID]Standing
	owner      node.ID
	nextKeeper node.ID
	at         map[node.ID]*Service // where Send ends
	copiers    map[string][]node.ID // by job; empty: those of all others
	sendErr    error
	sent       int
	stored     []string // minions of which a job cache had a return, taken, to tell the other nodes
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, dir: t.TempDir(), pyErr: map[string]error{}, standing: map[node.ID]Standing{}, at: map[node.ID]*Service{},
	}
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) Accepted(string) (string, bool) { return "", true }
func (w *world) IDs() []string                  { return nil }

func (w *world) Takes() bool { w.mu.Lock(); defer w.mu.Unlock(); return !w.busDown }
func (w *world) FireTrimmed(_ context.Context, tag string, _ []byte) error {
	w.set(func() { w.queued = append(w.queued, tag) })
	return nil
}
func (w *world) Flush(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busHangs {
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		return ctx.Err()
	}
	if w.busDown {
		return eventbus.ErrBusDown
	}
	w.fired, w.queued = append(w.fired, w.queued...), nil
	return nil
}

// python is the world as the local master.
type python struct{ *world }

func (w python) Up() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	up := !w.pyDown
	if w.pyBack {
		w.pyDown, w.pyBack = false, false
	}
	return up
}
func (w python) Return(_ context.Context, minion string, _ []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pyGot = append(w.pyGot, minion)
	if w.pyDoes != nil {
		w.pyDoes(minion)
	}
	return w.pyErr[minion]
}

func (w *world) Standing(id node.ID) Standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.standing[id]
}
func (w *world) Owner(string) (node.ID, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.owner, w.owner != ""
}

// peers are the other nodes as one of them sees them.
type peers struct {
	*world
	self node.ID
}

func (w peers) NextKeeper(node.ID) (node.ID, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nextKeeper, w.nextKeeper != "" && w.nextKeeper != w.self
}

// Copiers of everything are those that are set and there, else each node itself.
func (w peers) Copiers(jid string) []node.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.copiers == nil {
		return []node.ID{w.self}
	}
	ids, ok := w.copiers[jid]
	if !ok {
		ids = w.copiers[""]
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id node.ID) bool { return id != w.self && w.at[id] == nil })
}

// Keepers of everything are all other nodes.
func (w peers) Keepers(string) []node.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.at))
}

// Successor of everything is nextKeeper.
func (w peers) Successor(string) (node.ID, bool) { return w.NextKeeper("") }

func (w *world) Send(ctx context.Context, to node.ID, body []byte) error {
	w.mu.Lock()
	s, err := w.at[to], w.sendErr
	w.sent++
	w.mu.Unlock()
	batch, perr := parseBatch(body)
	if s == nil || perr != nil {
		return errors.Join(errors.New("no such node"), perr)
	}
	if aerr := s.acceptBatch(ctx, "a", batch); aerr != nil {
		return aerr
	}
	return err // an answer that is lost
}

// service makes one node of the world; change edits its configuration.
func (w *world) service(id node.ID, change ...func(*Config)) *Service {
	w.t.Helper()
	cache := filepath.Join(w.dir, string(id), "cache")
	require.NoError(w.t, os.MkdirAll(cache, 0o755))
	c := Config{
		Self: id, Dir: filepath.Join(w.dir, string(id), "returns"), Mode: Mode{Cache: w.cache(cache, "3007.15")},
		Bus: w, Python: Python{Up: python{w}.Up, Return: python{w}.Return}, Peers: peers{w, id},
		KeepForPython: func() bool { return true },
	}
	for _, f := range change {
		f(&c)
	}
	s, err := New(c)
	require.NoError(w.t, err)
	return s
}

// cache is the job cache of a master of that version.
func (w *world) cache(dir, version string) *jobcache.Cache {
	w.t.Helper()
	ver, err := localmaster.ParseVersion(version)
	require.NoError(w.t, err)
	opts, err := localmaster.LoadConfig(filepath.Join(w.dir, "none"), ver)
	require.NoError(w.t, err)
	stored := func(j *jobcache.Job) {
		if !j.Ahead {
			w.set(func() { w.stored = append(w.stored, j.Minion) })
		}
	}
	k, err := jobcache.New(jobcache.Config{Options: opts, Version: ver, CacheDir: dir, UID: -1, GID: -1, Keys: w,
		Stored: stored})
	require.NoError(w.t, err)
	return k
}

// open is service and Open; it is closed with the test.
func (w *world) open(id node.ID, change ...func(*Config)) *Service {
	w.t.Helper()
	s := w.service(id, change...)
	require.NoError(w.t, s.Open(context.Background()))
	w.t.Cleanup(func() { check.NoError(w.t, s.Close()) })
	w.set(func() { w.at[id] = s })
	return s
}

const jid = "20261121040506000001"

// request is a return of a minion; extra fields over the usual ones.
func request(t testing.TB, minion string, extra ...any) Request {
	t.Helper()
	load := map[string]any{
		"cmd": "_return", "id": minion, "jid": jid, "fun": "test.ping", "fun_args": []any{}, "return": true, "retcode": 0,
		"success": true, "nonce": "0123456789abcdef0123456789abcdef",
	}
	for i := 0; i < len(extra); i += 2 {
		load[extra[i].(string)] = extra[i+1]
	}
	raw, err := saltwire.AppendAny(nil, load, saltwire.Wire)
	require.NoError(t, err)
	id, _ := load["jid"].(string)
	return Request{Cmd: load["cmd"].(string), JID: id, Minion: minion, Load: raw, Received: time.Now()}
}

// take waits for the outcome of a taking function.
func take(t *testing.T, f func(func([]byte, error))) ([]byte, error) {
	t.Helper()
	type outcome struct {
		reply []byte
		err   error
	}
	got := make(chan outcome, 2)
	f(func(reply []byte, err error) { got <- outcome{reply, err} })
	select {
	case o := <-got:
		return o.reply, o.err
	case <-time.After(30 * time.Second):
		t.Fatal("no answer")
		return nil, nil
	}
}

func must(t *testing.T, f func(func([]byte, error))) {
	t.Helper()
	if reply, err := take(t, f); err != nil || string(reply) != "\xc0" {
		t.Fatalf("answer %x, %v", reply, err)
	}
}

func pending(s *Service, journal string) (n uint64) {
	for _, j := range s.Stats() {
		if j.Name == journal {
			for _, c := range j.Consumers {
				n += c.Pending
			}
		}
	}
	return n
}
