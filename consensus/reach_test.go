package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// messages counts log records by their message.
type messages struct {
	slog.Handler
	mu   *sync.Mutex
	seen map[string]int
}

func newMessages() messages {
	return messages{slog.DiscardHandler, &sync.Mutex{}, map[string]int{}}
}

func (m messages) Enabled(context.Context, slog.Level) bool { return true }
func (m messages) WithAttrs([]slog.Attr) slog.Handler       { return m }
func (m messages) Handle(_ context.Context, r slog.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[r.Message]++
	return nil
}

func (m messages) count(text string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[text]
}

// TestReplication_ResumesWithTheFirstHeartbeat cuts a member off for long enough that raft would wait seconds before
// its next request. Raft waits after failed requests, so it must not count one.
func TestReplication_ResumesWithTheFirstHeartbeat(t *testing.T) {
	seen := newMessages()
	c := form(t, 3, func(cfg *Config) { cfg.Logger = slog.New(seen) })
	f, l := c.follower(), c.leader()
	term := l.raft.Load().CurrentTerm()
	c.f.split(f.cfg.ID)
	c.must(l, accept("while it was away"))
	c.eventually("heartbeats that fail", func() (bool, string) {
		n := seen.count("raft: failed to heartbeat to")
		return n >= 20, fmt.Sprint(n)
	})
	c.f.heal()
	c.eventually("the key is there", func() (bool, string) {
		_, ok := f.View().Key("while it was away")
		return ok && f.CaughtUp(), fmt.Sprintf("%+v", f.Status())
	})
	if now := l.raft.Load().CurrentTerm(); now != term {
		t.Skipf("the machine was too busy for one leader to stay: term %d, then %d", term, now)
	}
	if n := seen.count("raft: failed to appendEntries to"); n > 0 {
		t.Errorf("raft counted %d failed requests to a member that was cut off, and waits after each", n)
	}
}

// TestReplication_EndsForAMemberThatWasRemoved checks that a kept request ends with its use.
func TestReplication_EndsForAMemberThatWasRemoved(t *testing.T) {
	seen := newMessages()
	c := form(t, 3, func(cfg *Config) { cfg.Logger = slog.New(seen) })
	f, l := c.follower(), c.leader()
	c.f.split(f.cfg.ID)
	c.eventually("heartbeats that fail", func() (bool, string) {
		return seen.count("raft: failed to heartbeat to") >= 3, ""
	})
	c.must(l, state.MemberRemove{ID: f.cfg.ID})
	c.eventually("no more heartbeats", func() (bool, string) {
		before := seen.count("raft: failed to heartbeat to")
		time.Sleep(2 * l.cfg.Timing.Heartbeat)
		after := seen.count("raft: failed to heartbeat to")
		return before == after, fmt.Sprint(before, after)
	})
}

func TestReach_Wait(t *testing.T) {
	const id, term = raft.ServerID("m2"), 7
	for name, tc := range map[string]struct {
		during func(r *reach, leads *bool, mu *sync.Mutex, cancel func())
		want   bool
	}{
		"a heartbeat is answered": {func(r *reach, _ *bool, _ *sync.Mutex, _ func()) { r.noteAnswered(id) }, true},
		"another member's heartbeat too": {func(r *reach, _ *bool, _ *sync.Mutex,
			_ func()) {
			r.noteAnswered("m3")
			r.noteAnswered(id)
		}, true},
		"this node does not lead any more": {func(_ *reach, leads *bool, mu *sync.Mutex, _ func()) {
			mu.Lock()
			defer mu.Unlock()
			*leads = false
		}, false},
		"the node closes": {func(_ *reach, _ *bool, _ *sync.Mutex, cancel func()) { cancel() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			leads := true
			r := newReach(func(got node.ID, in uint64) bool {
				mu.Lock()
				defer mu.Unlock()
				return leads && got == node.ID(id) && in == term
			}, func() {})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan bool, 1)
			go func() { done <- r.waitHeartbeat(ctx, id, term, time.Millisecond) }()
			eventually(t, "it waits", func() (bool, string) {
				r.mu.Lock()
				defer r.mu.Unlock()
				return r.beats[id] != nil, ""
			})
			tc.during(r, &leads, &mu, cancel)
			select {
			case got := <-done:
				check.Equal(t, got, tc.want, "wait returned")
			case <-time.After(testTimeout):
				t.Fatal("wait does not return")
			}
		})
	}
}

// TestTransport_SpreadsRejections checks what raft is told of a follower that stored nothing.
func TestTransport_SpreadsRejections(t *testing.T) {
	for name, tc := range map[string]struct {
		resp raft.AppendEntriesResponse
		want bool // raft does not back off
	}{
		"it stored nothing":     {raft.AppendEntriesResponse{Term: 3}, true},
		"it stored the entries": {raft.AppendEntriesResponse{Term: 3, Success: true}, false},
		"it has a later term":   {raft.AppendEntriesResponse{Term: 4}, false},
	} {
		tr := &transport{reach: newReach(func(node.ID, uint64) bool { return true }, func() {}), in: &inbound{ctx: t.Context()}}
		tr.replaceBackoff("m2", &raft.AppendEntriesRequest{Term: 3}, &tc.resp)
		check.Equal(t, tc.resp.NoRetryBackoff, tc.want, name, "NoRetryBackoff")
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("closed"))
	tr := &transport{reach: newReach(func(node.ID, uint64) bool { return true }, func() {}), in: &inbound{ctx: ended}}
	var resp raft.AppendEntriesResponse
	if tr.replaceBackoff("m2", &raft.AppendEntriesRequest{}, &resp); resp.NoRetryBackoff {
		t.Error("raft repeats the request to a member while this node closes")
	}
}

// TestTransport_AppendEntriesRejected: raft is told so with the answer to its request.
func TestTransport_AppendEntriesRejected(t *testing.T) {
	open := func() *raft.NetworkTransport {
		n, err := raft.NewTCPTransport("127.0.0.1:0", nil, 1, testTimeout, io.Discard)
		require.NoError(t, err)
		t.Cleanup(func() { _ = n.Close() })
		return n
	}
	follower := open()
	go func() {
		rpc := <-follower.Consumer()
		rpc.Respond(&raft.AppendEntriesResponse{Term: 3}, nil)
	}()
	tr := &transport{
		NetworkTransport: open(), reach: newReach(func(node.ID, uint64) bool { return true }, func() {}),
		hangs: never,
		in:    &inbound{inboundConfig: inboundConfig{position: func() position { return position{term: 3} }}, ctx: t.Context()},
	}
	req := raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{Addr: []byte("m1")}, Term: 3, PrevLogEntry: 1, PrevLogTerm: 3,
		Entries: []*raft.Log{{Index: 2, Term: 3}}}
	var resp raft.AppendEntriesResponse
	require.NoError(t, tr.AppendEntries("m2", follower.LocalAddr(), &req, &resp))
	if resp.Success || !resp.NoRetryBackoff {
		t.Errorf("raft backs off: %+v", resp)
	}
}
