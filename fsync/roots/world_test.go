package roots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/signal"
)

// world is a cluster in memory: its log decides as consensus does, its peers speak HTTP.
type world struct {
	t     testing.TB
	mu    sync.Mutex
	revs  []Revision
	subs  map[chan struct{}]bool
	nodes map[node.ID]*testNode
	slots []SlotName
	spoil func(from, to node.ID, r io.ReadCloser) (io.ReadCloser, error) // of an answer
	// deciding is called before a proposal of a node becomes a revision.
	deciding func(*testNode)
	// decided is called when a proposal of a node has become a revision, before the node hears of that.
	decided func(*testNode) error
	// refused is called when a proposal of a node was not of the head.
	refused func(*testNode)
}

// testNode is a node; what is on its disks outlives its store.
type testNode struct {
	w         *world
	id        node.ID
	dirs      map[SlotName]string
	state     string
	cfg       Config
	store     *Store
	srv       *httptest.Server
	cut       bool   // from its log
	newest    uint64 // revision it sees; 0: all
	forgetful bool   // its log names the head only
	unready   atomic.Bool
	holding   int
	holds     int
}

var fileBase = SlotName{Kind: "file", Env: "base"}

func newWorld(t testing.TB, slots ...SlotName) *world {
	if len(slots) == 0 {
		slots = []SlotName{fileBase}
	}
	return &world{t: t, subs: map[chan struct{}]bool{}, nodes: map[node.ID]*testNode{}, slots: slots}
}

// node makes a node that is not started.
func (w *world) node(id node.ID) *testNode {
	w.t.Helper()
	top := w.t.TempDir()
	n := &testNode{w: w, id: id, dirs: map[SlotName]string{}, state: filepath.Join(top, "state")}
	n.cfg = Config{
		Self: id, StateDir: n.state, UID: -1, GID: -1, Mode: ModeAuto, Log: nodeLog{n}, Peers: nodePeers{n}, Gate: n,
		From: func(context.Context) (node.ID, bool) { return "other", true },
		Timing: Timing{Quiet: 20 * time.Millisecond, Scan: 2 * time.Second, Retry: 20 * time.Millisecond,
			RetryMax: 200 * time.Millisecond},
	}
	if os.Getenv("ROOTS_LOG") != "" {
		n.cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", id)
	}
	for i, slot := range w.slots {
		n.dirs[slot] = filepath.Join(top, fmt.Sprint("slot", i))
		require.NoError(w.t, os.Mkdir(n.dirs[slot], 0o755))
		n.cfg.Slots = append(n.cfg.Slots, Slot{slot, n.dirs[slot]})
	}
	w.mu.Lock()
	w.nodes[id] = n
	w.mu.Unlock()
	return n
}

// start makes a node and starts it.
func (w *world) start(id node.ID) *testNode {
	w.t.Helper()
	n := w.node(id)
	n.open()
	return n
}

func (n *testNode) open() {
	n.w.t.Helper()
	store, err := New(n.cfg)
	require.NoError(n.w.t, err)
	n.openStore(store)
}

func (n *testNode) openStore(store *Store) {
	n.w.t.Helper()
	require.NoError(n.w.t, store.Open(context.Background()))
	srv := httptest.NewServer(store.Handler())
	n.w.mu.Lock()
	n.store, n.srv = store, srv
	n.w.mu.Unlock()
	n.w.t.Cleanup(n.close)
}

func (n *testNode) close() {
	check.NoError(n.w.t, n.crash())
}

// crash is close of a store that may have something to complain of.
func (n *testNode) crash() error {
	n.w.mu.Lock()
	store, srv := n.store, n.srv
	n.store, n.srv = nil, nil
	n.w.mu.Unlock()
	if store == nil {
		return nil
	}
	srv.CloseClientConnections()
	srv.Close()
	return store.Close()
}

func (n *testNode) Hold(context.Context) (func(), error) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.holding++
	n.holds++
	return func() {
		n.w.mu.Lock()
		n.holding--
		n.w.mu.Unlock()
	}, nil
}

// nodeLog is the log as one node sees it.
type nodeLog struct{ n *testNode }

func (l nodeLog) Ready() bool { return !l.n.unready.Load() }

func (l nodeLog) Head() (Revision, bool) {
	l.n.w.mu.Lock()
	defer l.n.w.mu.Unlock()
	return l.n.w.head(l.n.newest)
}

// head is the newest revision in force, of those up to newest unless that is 0.
func (w *world) head(newest uint64) (Revision, bool) {
	for i := len(w.revs) - 1; i >= 0; i-- {
		if w.revs[i].State == StateApplied && (newest == 0 || w.revs[i].Number <= newest) {
			return w.revs[i], true
		}
	}
	return Revision{}, false
}

func (l nodeLog) Revisions() []Revision {
	l.n.w.mu.Lock()
	defer l.n.w.mu.Unlock()
	if l.n.forgetful {
		return slices.Clone(l.n.w.revs[len(l.n.w.revs)-1:])
	}
	return slices.DeleteFunc(slices.Clone(l.n.w.revs),
		func(r Revision) bool { return l.n.newest > 0 && r.Number > l.n.newest })
}

func (l nodeLog) Propose(_ context.Context, p Proposal) (Revision, error) {
	l.n.w.mu.Lock()
	deciding, decided, refused := l.n.w.deciding, l.n.w.decided, l.n.w.refused
	l.n.w.mu.Unlock()
	if deciding != nil {
		deciding(l.n)
	}
	r, err := l.n.w.decideOn(l.n, p)
	switch {
	case err == nil && decided != nil:
		err = decided(l.n)
	case errors.Is(err, ErrNotCurrent) && refused != nil:
		refused(l.n)
	}
	return r, err
}

func (w *world) decideOn(n *testNode, p Proposal) (Revision, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.cut {
		return Revision{}, ErrNoQuorum
	}
	if head, _ := w.head(0); head.Number != p.Parent {
		return Revision{}, fmt.Errorf("parent %d: %w", p.Parent, ErrNotCurrent)
	}
	r := Revision{
		Number: uint64(len(w.revs) + 1), Parent: p.Parent, Root: p.Root, Author: n.id, Kind: p.Kind, State: StateApplied,
		Stats: p.Stats, Note: p.Note,
	}
	if p.Held && !p.Confirmed {
		r.State = StateHeld
		for i, old := range w.revs {
			if old.State == StateHeld && old.Author == r.Author {
				w.revs[i].State = StateDropped
			}
		}
	}
	w.revs = append(w.revs, r)
	w.signal()
	return r, nil
}

// decide confirms or drops a held revision.
func (w *world) decide(number uint64, state State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revs[number-1].State = state
	w.signal()
}

func (w *world) signal() {
	for c := range w.subs {
		signal.Send(c)
	}
}

func (l nodeLog) Changed(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	l.n.w.mu.Lock()
	l.n.w.subs[c] = true
	l.n.w.mu.Unlock()
	context.AfterFunc(ctx, func() {
		l.n.w.mu.Lock()
		delete(l.n.w.subs, c)
		l.n.w.mu.Unlock()
	})
	return c
}

type nodePeers struct{ n *testNode }

func (p nodePeers) Members() []node.ID {
	p.n.w.mu.Lock()
	defer p.n.w.mu.Unlock()
	var out []node.ID
	for id, o := range p.n.w.nodes {
		if id != p.n.id && o.srv != nil {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, func(a, b node.ID) int { return strings.Compare(string(b), string(a)) })
	return out
}

func (p nodePeers) Fetch(ctx context.Context, from node.ID, body []byte) (io.ReadCloser, error) {
	w := p.n.w
	w.mu.Lock()
	o, spoil := w.nodes[from], w.spoil
	var url string
	if o != nil && o.srv != nil {
		url = o.srv.URL
	}
	w.mu.Unlock()
	if url == "" {
		return nil, errors.New("down")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, errors.New(resp.Status)
	}
	if spoil != nil {
		return spoil(from, p.n.id, resp.Body)
	}
	return resp.Body, nil
}
