package consensus

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout bounds every wait in these tests; none should come near it.
const testTimeout = 30 * time.Second

func fastTiming() Timing {
	return Timing{
		Heartbeat: 200 * time.Millisecond, Election: 200 * time.Millisecond, Lease: 150 * time.Millisecond,
		IdleHeartbeat: 400 * time.Millisecond, Silence: 400 * time.Millisecond,
		Commit: 5 * time.Millisecond, Transport: 2 * time.Second, Reconcile: 25 * time.Millisecond,
		Stable: 60 * time.Millisecond, Contact: 20 * time.Millisecond, Recent: time.Second,
		Attempt: 500 * time.Millisecond, Propose: testTimeout, BoltLock: 50 * time.Millisecond,
	}
}

// cluster is some nodes on one fabric.
type cluster struct {
	t     *testing.T
	f     *fabric
	dirs  string
	nodes map[node.ID]*Node
	tune  func(*Config)
}

func newCluster(t *testing.T, tune func(*Config)) *cluster {
	c := &cluster{t: t, f: newFabric(), dirs: t.TempDir(), nodes: map[node.ID]*Node{}, tune: tune}
	t.Cleanup(func() {
		for id := range c.nodes {
			c.stop(id)
		}
	})
	return c
}

// start opens a node, new or from its directory.
func (c *cluster) start(id node.ID) *Node {
	c.t.Helper()
	cfg := Config{
		ID: id, Dir: filepath.Join(c.dirs, string(id)), Port: fabricPort{c.f, id}, Timing: fastTiming(),
		Forward: c.f.forward(id), Stats: c.f.stats(id), Alive: c.f.alive(id),
	}
	if os.Getenv("CONSENSUS_TEST_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("on",
			string(id))
	}
	if c.tune != nil {
		c.tune(&cfg)
	}
	n, err := New(cfg)
	require.NoError(c.t, err)
	require.NoError(c.t, n.Open(c.t.Context()))
	c.f.mu.Lock()
	c.f.nodes[id] = n
	c.f.mu.Unlock()
	c.nodes[id] = n
	return n
}

// stop ends a node as if it had been killed, as far as the others can see.
func (c *cluster) stop(id node.ID) {
	c.t.Helper()
	n := c.nodes[id]
	delete(c.nodes, id)
	c.f.mu.Lock()
	delete(c.f.nodes, id)
	c.f.mu.Unlock()
	check.NoError(c.t, n.Close(), "close", id)
}

func initFor(id node.ID) state.Init {
	return state.Init{
		Identity:    state.Identity{ClusterID: "test", UUID: "uuid-1"},
		Founder:     member(id),
		EpochKey:    epochKey(1),
		SessionSeed: state.SecretText(strings.Repeat("s", 32)),
		GossipKey:   state.SecretText(strings.Repeat("g", 32)),
	}
}

func epochKey(b byte) state.Secret {
	return state.SecretText(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 56)))
}

func member(id node.ID) state.Member {
	fp := fmt.Sprintf("%x", []byte(id))
	return state.Member{ID: id, Addr: string(id) + ":4520", Fingerprint: fp + strings.Repeat("0", 64-len(fp)), Weight: 100}
}

func add(id node.ID) state.MemberAdd {
	m := member(id)
	return state.MemberAdd{ID: id, Addr: m.Addr, Fingerprint: m.Fingerprint, Weight: 100}
}

// form makes a cluster of n voters, m1 its founder.
func form(t *testing.T, n int, tune func(*Config)) *cluster {
	t.Helper()
	c := newCluster(t, tune)
	founder := c.start("m1")
	require.NoError(t, founder.Bootstrap(t.Context(), initFor("m1")))
	for i := 2; i <= n; i++ {
		id := node.ID(fmt.Sprintf("m%d", i))
		c.start(id)
		c.must(founder, add(id))
	}
	c.eventually("all vote and have caught up", func() (bool, string) {
		for _, m := range c.nodes {
			s := m.Status()
			if len(s.Voters) != n || !s.CaughtUp {
				return false, fmt.Sprintf("%+v", s)
			}
		}
		return true, ""
	})
	return c
}

// must proposes and expects success.
func (c *cluster) must(n *Node, cmds ...state.Command) []state.Result {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), testTimeout)
	defer cancel()
	results, err := n.Propose(ctx, cmds...)
	require.NoError(c.t, err)
	for i, r := range results {
		if r.Code != state.OK {
			c.t.Fatalf("command %d: %+v", i, r)
		}
	}
	return results
}

// eventually polls until cond holds and shows what it last said otherwise.
func (c *cluster) eventually(what string, cond func() (bool, string)) {
	c.t.Helper()
	eventually(c.t, what, cond)
}

func eventually(t *testing.T, what string, cond func() (bool, string)) {
	t.Helper()
	patience.WaitNil(t, func() error {
		if ok, last := cond(); !ok {
			return fmt.Errorf("%s\nlast: %s", what, last)
		}
		return nil
	})
}

// leader waits for a leader that serves among ids, or among all.
func (c *cluster) leader(ids ...node.ID) *Node {
	c.t.Helper()
	if len(ids) == 0 {
		for id := range c.nodes {
			ids = append(ids, id)
		}
	}
	var found *Node
	c.eventually("a leader", func() (bool, string) {
		for _, id := range ids {
			if n := c.nodes[id]; n.Serving() {
				found = n
				return true, ""
			}
		}
		return false, fmt.Sprint(ids)
	})
	return found
}

// follower is some node that does not lead.
func (c *cluster) follower() *Node {
	c.t.Helper()
	l := c.leader()
	for _, n := range c.nodes {
		if n != l {
			return n
		}
	}
	c.t.Fatal("no follower")
	return nil
}

// converge waits until all nodes have the same state and returns its snapshot.
func (c *cluster) converge() string {
	c.t.Helper()
	var text string
	c.eventually("all have the same state", func() (bool, string) {
		text = ""
		for id, n := range c.nodes {
			var b strings.Builder
			require.NoError(c.t, n.View().WriteSnapshot(&b))
			if text != "" && b.String() != text {
				return false, fmt.Sprintf("%s at %d", id, n.View().Index())
			}
			text = b.String()
		}
		return true, ""
	})
	return text
}

func accept(id string) state.KeySet {
	return state.KeySet{ID: id, State: state.KeyAccepted, Pub: "PUB " + id}
}
