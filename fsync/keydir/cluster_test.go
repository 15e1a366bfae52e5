package keydir

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/signal"
)

// pem texts of real keys, made once.
var keyTexts = sync.OnceValue(func() []string {
	var out []string
	for range 4 {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if err != nil {
			panic(err)
		}
		out = append(out, strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))))
	}
	return out
})

// shared is a consensus that all test nodes share.
type shared struct {
	mu       sync.Mutex
	state    *state.State
	watchers []chan struct{}
	noQuorum bool
	proposed int // commands
	batches  int
}

func newShared(t *testing.T) *shared {
	w := newWorld(0, fresh)
	t.Helper()
	return &shared{state: w.log}
}

var errNoQuorum = errors.New("no quorum")

func (s *shared) Propose(_ context.Context, cmds []state.Command) ([]state.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noQuorum {
		return nil, errNoQuorum
	}
	s.proposed += len(cmds)
	s.batches++
	r := s.state.ApplyCommands(cmds...)
	for _, w := range s.watchers {
		signal.Send(w)
	}
	return r, nil
}

func (s *shared) View() state.View { return s.state.View() }

func (s *shared) Watch(context.Context) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{}, 1)
	s.watchers = append(s.watchers, c)
	return c
}

func (s *shared) quorum(ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noQuorum = !ok
}

func (s *shared) counts() (proposed, batches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proposed, s.batches
}

// machineDir is a node of a test: its directories and, while it runs, its Dir.
type testNode struct {
	t     *testing.T
	id    node.ID
	pki   string
	state string
	log   *shared
	found bool
	blind bool
	cur   func() bool
	late  *lateLog // its own sight of log, in directories that it shares; nil: log itself
	store *mmapkeys.Geometry
	holds int // Config.MaxLosses
	all   func() bool
	now   func() time.Time // the time of the cluster; nil: this host's
	once  bool             // nothing that happens makes it look again
	dir   *Dir
	logs  *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newTestNode(t *testing.T, id string, log *shared) *testNode {
	n := &testNode{t: t, id: node.ID(id), pki: filepath.Join(t.TempDir(), "pki"), state: t.TempDir(), log: log,
		logs: &syncBuffer{}}
	require.NoError(t, os.MkdirAll(n.pki, 0o700))
	for p := range places {
		require.NoError(t, os.MkdirAll(filepath.Join(n.pki, p.String()), 0o700))
	}
	t.Cleanup(func() {
		n.stop()
		if t.Failed() {
			text := n.logs.String()
			t.Logf("log of %s:\n%s", id, text[max(0, len(text)-6000):])
		}
	})
	return n
}

// start opens the Dir and waits for its first round.
func (n *testNode) start() *testNode {
	n.t.Helper()
	n.open()
	n.synced()
	return n
}

// synced waits until the node has done what consensus says now, and knows it.
func (n *testNode) synced() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(n.t, n.dir.WaitSynced(ctx, n.log.View().Rev()), n.id, "is not where consensus is")
}

func (n *testNode) open() {
	n.t.Helper()
	cfg := Config{
		PKIDir: n.pki, StateDir: n.state, Node: n.id, Founder: n.found, Current: n.cur, Log: n.log,
		Logger: slog.New(slog.NewTextHandler(n.logs, nil)),
		Timing: Timing{InvalidWait: 400 * time.Millisecond, Retry: 50 * time.Millisecond}, Store: n.store, MaxLosses: n.holds,
		HoldAll: n.all, Now: n.now,
	}
	if n.once {
		cfg.Timing.Debounce = time.Hour
	}
	if n.late != nil {
		cfg.Log, cfg.Shared = n.late, &Shared{Latest: n.late.catchUp}
	}
	d, err := New(cfg)
	require.NoError(n.t, err)
	if n.blind {
		d.watcher = func() (*watcher, error) { return nil, errNoWatcher }
	}
	require.NoError(n.t, d.Open(n.t.Context()))
	n.dir = d
}

func (n *testNode) stop() {
	if n.dir == nil {
		return
	}
	check.NoError(n.t, n.dir.Close(), "close", n.id)
	n.dir = nil
}

func (n *testNode) path(p place, id string) string { return filepath.Join(n.pki, p.String(), id) }

func (n *testNode) put(p place, id, text string) {
	n.t.Helper()
	require.NoError(n.t, os.WriteFile(n.path(p, id), []byte(text), 0o644))
}

func (n *testNode) move(from, to place, id string) {
	n.t.Helper()
	require.NoError(n.t, os.Rename(n.path(from, id), n.path(to, id)))
}

func (n *testNode) remove(p place, id string) {
	n.t.Helper()
	require.NoError(n.t, os.Remove(n.path(p, id)))
}

// files lists "dir/id" → text of all keys.
func (n *testNode) files() map[string]string {
	out := map[string]string{}
	for p := range places {
		entries, _ := os.ReadDir(filepath.Join(n.pki, p.String()))
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				continue
			}
			text, err := os.ReadFile(n.path(p, e.Name()))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				text = []byte("unreadable")
			}
			out[p.String()+"/"+e.Name()] = string(text)
		}
	}
	return out
}

// short names texts in failures.
func short(files map[string]string) string {
	names := map[string]string{}
	for i, k := range keyTexts() {
		names[k] = fmt.Sprint("key", i)
	}
	var b strings.Builder
	for _, f := range sortedKeys(files) {
		name, ok := names[files[f]]
		if !ok {
			name = fmt.Sprintf("%.20q", files[f])
		}
		fmt.Fprintf(&b, " %s=%s", f, name)
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	for i := range keys {
		for j := i + 1; j < len(keys); j++ {
			if keys[j] < keys[i] {
				keys[i], keys[j] = keys[j], keys[i]
			}
		}
	}
	return keys
}

// await waits until all nodes have exactly these files, and consensus the same.
func await(t *testing.T, want map[string]string, nodes ...*testNode) {
	t.Helper()
	patience.WaitNil(t, func() error {
		bad := ""
		for _, n := range nodes {
			if got := n.files(); !maps.Equal(got, want) {
				bad += fmt.Sprintf("\n%s has%s", n.id, short(got))
			}
		}
		if got := consensusFiles(nodes[0].log.View()); !maps.Equal(got, want) {
			bad += "\nconsensus has" + short(got)
		}
		if bad != "" {
			return fmt.Errorf("want%.2000s%.4000s", short(want), bad)
		}
		return nil
	})
}

func consensusFiles(v state.View) map[string]string {
	out := map[string]string{}
	v.Keys(func(k state.Key) bool {
		out[placeOf(k.State).String()+"/"+k.ID] = k.Pub
		return true
	})
	for _, k := range v.DeniedKeys() {
		out["minions_denied/"+k.ID] = k.Pub
	}
	return out
}
