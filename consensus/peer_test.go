package consensus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// realNode is a Node on the real peer port, wired as the daemon wires it.
type realNode struct {
	id   node.ID
	node *Node
	port *peer.Port
	fp   node.Fingerprint
	seed atomic.Pointer[[]state.Member] // what a joiner is told before it has a state
}

// Lookup implements peer.Roster out of the state.
func (r *realNode) Lookup(id node.ID) (node.Entry, bool) {
	for _, m := range r.members() {
		if m.ID == id {
			addr, err := node.ParseAddr(m.Addr)
			return node.Entry{ID: id, Addr: addr, Fingerprint: node.Fingerprint(m.Fingerprint)}, err == nil
		}
	}
	return node.Entry{}, false
}

// ByFingerprint implements peer.Roster.
func (r *realNode) ByFingerprint(fp node.Fingerprint) (node.ID, bool) {
	for _, m := range r.members() {
		if m.Fingerprint == string(fp) {
			return m.ID, true
		}
	}
	return "", false
}

func (r *realNode) members() []state.Member {
	if v := r.node.View(); v.Initialized() {
		return v.Members()
	}
	if seed := r.seed.Load(); seed != nil {
		return *seed
	}
	return nil
}

// Entries implements peer.Roster.
func (r *realNode) Entries() (out []node.Entry) {
	for _, m := range r.members() {
		if e, ok := r.Lookup(m.ID); ok {
			out = append(out, e)
		}
	}
	return out
}

func (r *realNode) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var out []byte
	var err error
	switch req.URL.Path {
	case "/forward":
		var b []byte
		if b, err = io.ReadAll(io.LimitReader(req.Body, MaxForward+1)); err == nil {
			from, _ := peer.FromContext(req.Context())
			out, err = r.node.HandleForward(req.Context(), from, b)
		}
	case "/stats":
		out, err = json.Marshal(r.node.LocalStats())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(out)
}

func (r *realNode) post(ctx context.Context, to node.ID, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(to)+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	res, err := r.port.HTTPClient().Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, res.Status)
	}
	return b, err
}

func startReal(t *testing.T, id node.ID, dir string) *realNode {
	t.Helper()
	ident, err := peer.NewIdentity(id)
	require.NoError(t, err)
	r := &realNode{id: id, fp: ident.Fingerprint()}
	r.port, err = peer.NewPort(peer.Config{Listen: "127.0.0.1:0", Advertise: "", Identity: ident, Roster: r, Handler: r})
	require.NoError(t, err)
	r.node, err = New(Config{
		ID: id, Dir: filepath.Join(dir, string(id)), Port: r.port, Remote: peer.Remote, Timing: fastTiming(),
		Forward: func(ctx context.Context, to node.ID, b []byte) ([]byte, error) { return r.post(ctx, to, "/forward", b) },
		Stats: func(ctx context.Context, to node.ID) (s PeerStats, err error) {
			b, err := r.post(ctx, to, "/stats", nil)
			if err != nil {
				return s, err
			}
			return s, json.Unmarshal(b, &s)
		},
	})
	require.NoError(t, err)
	require.NoError(t, r.port.Open(t.Context()))
	t.Cleanup(func() { check.NoError(t, errors.Join(r.node.Close(), r.port.Close())) })
	require.NoError(t, r.node.Open(t.Context()))
	return r
}

func (r *realNode) member() state.Member {
	return state.Member{ID: r.id, Addr: r.port.Advertise().String(), Fingerprint: string(r.fp), Weight: 100}
}

func TestOnTheRealPeerPort(t *testing.T) {
	dir := t.TempDir()
	m1, m2, m3 := startReal(t, "m1", dir), startReal(t, "m2", dir), startReal(t, "m3", dir)
	init := initFor("m1")
	init.Founder = m1.member()
	require.NoError(t, m1.node.Bootstrap(t.Context(), init))
	for _, r := range []*realNode{m2, m3} {
		r.seed.Store(&[]state.Member{m1.member(), r.member()})
		m := r.member()
		if _, err := m1.node.Propose(t.Context(),
			state.MemberAdd{ID: m.ID, Addr: m.Addr, Fingerprint: m.Fingerprint, Weight: 100}); err != nil {
			t.Fatal(err)
		}
		eventually(t, string(r.id)+" votes", func() (bool, string) {
			s := r.node.Status()
			return s.Role == RoleFollower && s.CaughtUp, fmt.Sprintf("%+v", s)
		})
	}
	if res, err := m3.node.Propose(t.Context(), accept("web1")); err != nil || res[0].Code != state.OK {
		t.Fatalf("%+v %v", res, err)
	}
	require.NoError(t, m2.node.Barrier(t.Context()))
	if _, ok := m2.node.View().Key("web1"); !ok {
		t.Error("m2 passed the barrier without the key")
	}
	eventually(t, "m2 leads", func() (bool, string) {
		if m2.node.Serving() {
			return true, ""
		}
		for _, r := range []*realNode{m1, m3} { // a busy machine may have elected another one meanwhile
			if r.node.Serving() {
				return false, fmt.Sprint(r.node.TransferLeadership(t.Context(), "m2"))
			}
		}
		return false, "nobody leads"
	})
	if _, err := m3.node.Propose(t.Context(), accept("web2"), state.MemberRemove{ID: "m1"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "m1 is out", func() (bool, string) {
		s := m2.node.Status()
		return len(s.Voters) == 2 && !m1.node.Status().HasQuorum, fmt.Sprintf("%+v", s)
	})
	t.Logf("m1: %+v", m1.node.Status())
}
