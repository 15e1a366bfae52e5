// Package replicatest tests stores made of package replica: Net connects them without a network, Run is what all of
// them promise.
package replicatest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"saltclusterd/fsync/replica"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/signal"
)

// Net is the members of a cluster, which call each other without a network.
type Net struct {
	mu       sync.Mutex
	handlers map[node.ID]http.Handler // nil: the member is closed
	played   map[node.ID]func(body []byte) ([]byte, error)
	cut      map[node.ID]bool
	wakes    []chan struct{}
	sent     []Body
	record   bool
}

// Body is one that was sent, whether it has arrived or not.
type Body struct {
	From, To node.ID
	Bytes    []byte
}

// NewNet returns a cluster without members.
func NewNet() *Net {
	return &Net{handlers: map[node.ID]http.Handler{}, played: map[node.ID]func([]byte) ([]byte, error){},
		cut: map[node.ID]bool{}}
}

type senderKey struct{}

// Config is that of the member id; what is not about the cluster is left to the caller.
func (n *Net) Config(id node.ID, stateDir string) replica.Config {
	return replica.Config{
		StateDir: stateDir, Peers: peers{n, id}, Changed: n.watch, Pace: Quick(),
		Members: func() []node.ID {
			return slices.DeleteFunc(n.Members(), func(other node.ID) bool { return other == id })
		},
		From: func(ctx context.Context) (node.ID, bool) { id, ok := ctx.Value(senderKey{}).(node.ID); return id, ok },
	}
}

// Members lists all members.
func (n *Net) Members() []node.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(func(yield func(node.ID) bool) {
		for id := range maps.Keys(n.handlers) {
			if !yield(id) {
				return
			}
		}
		for id := range maps.Keys(n.played) {
			if !yield(id) {
				return
			}
		}
	})
}

// Join makes id a member, or gives it another handler; nil: it is closed.
func (n *Net) Join(id node.ID, h http.Handler) {
	n.mu.Lock()
	n.handlers[id] = h
	n.mu.Unlock()
	n.Wake()
}

// Play makes id a member whose answers the test gives.
func (n *Net) Play(id node.ID, answer func(body []byte) ([]byte, error)) {
	n.mu.Lock()
	n.played[id] = answer
	n.mu.Unlock()
	n.Wake()
}

// Leave removes a member.
func (n *Net) Leave(id node.ID) {
	n.mu.Lock()
	delete(n.handlers, id)
	n.mu.Unlock()
	n.Wake()
}

// Cut says whether a member cannot be reached, nor reach others.
func (n *Net) Cut(id node.ID, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[id] = down
}

// Record keeps the bodies that are sent from now on.
func (n *Net) Record(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.record = on
}

// Sent returns the bodies that were kept.
func (n *Net) Sent() []Body {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.sent)
}

// Wake says to all members that something may have changed.
func (n *Net) Wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.wakes {
		signal.Send(c)
	}
}

func (n *Net) watch(context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wakes = append(n.wakes, c)
	return c
}

// Send sends a body, and returns the answer.
func (n *Net) Send(ctx context.Context, from, to node.ID, body []byte) ([]byte, error) {
	n.mu.Lock()
	play, h, down := n.played[to], n.handlers[to], n.cut[to] || n.cut[from]
	if n.record {
		n.sent = append(n.sent, Body{from, to, bytes.Clone(body)})
	}
	n.mu.Unlock()
	switch {
	case play != nil:
		return play(body)
	case h == nil || down:
		return nil, errors.New("unreachable")
	}
	return Serve(ctx, h, from, body)
}

// Serve gives a body to a handler. An empty sender is not a member.
func Serve(ctx context.Context, h http.Handler, from node.ID, body []byte) ([]byte, error) {
	if from != "" {
		ctx = context.WithValue(ctx, senderKey{}, from)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body)))
	if w.Code != http.StatusOK {
		return nil, errors.New(w.Body.String())
	}
	return w.Body.Bytes(), nil
}

// peers implements replica.Peers.
type peers struct {
	n    *Net
	from node.ID
}

func (p peers) Call(ctx context.Context, to node.ID, _ string, body []byte, limit int64) ([]byte, error) {
	answer, err := p.n.Send(ctx, p.from, to, body)
	if int64(len(answer)) > limit {
		return nil, errors.New("the answer is too long")
	}
	return answer, err
}

// Lose removes a directory at once, whatever is written into it meanwhile.
func Lose(t testing.TB, dir string) {
	t.Helper()
	if err := os.Rename(dir, filepath.Join(t.TempDir(), "lost")); err != nil {
		t.Fatal(err)
	}
}

// Fixture is a body as every released version writes it, of the caller's testdata.
func Fixture(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "wire", name+".hex"))
	require.NoError(t, err)
	raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return raw
}
