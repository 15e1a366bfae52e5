package consensus

import (
	"fmt"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// A node that restarts without the others has the state it had before.
func TestRecall_WithoutQuorum(t *testing.T) {
	for name, tune := range map[string]func(*Config){
		"no snapshot": nil,
		"snapshots":   func(c *Config) { c.Timing.SnapshotLog, c.Timing.TrailingLog = 5, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := form(t, 3, tune)
			for i := range 20 {
				c.must(c.follower(), accept(fmt.Sprint("k", i)))
			}
			before := c.converge()
			rev := c.nodes["m2"].View().Rev()
			for _, id := range []node.ID{"m1", "m2", "m3"} {
				c.stop(id)
			}
			n := c.start("m2")
			if got := n.View().Rev(); got != rev {
				t.Errorf("revision %d, was %d", got, rev)
			}
			if _, ok := n.View().Key("k19"); !ok || n.CaughtUp() {
				t.Errorf("knows the key: %v, caught up: %v", ok, n.CaughtUp())
			}
			c.start("m1")
			c.start("m3")
			c.must(c.leader(), accept("more"))
			c.must(c.leader(), state.KeySet{ID: "more", State: state.KeyDeleted, BaseRev: keyRev(t, c.leader(), "more")})
			if c.converge() == before {
				t.Error("nothing was decided after the restart")
			}
		})
	}
}

func keyRev(t *testing.T, n *Node, id string) uint64 {
	t.Helper()
	return n.View().KeyRev(id)
}

// A node that is killed right after a commit starts with an older state, and catches up.
func TestRecall_PrefixAfterKill(t *testing.T) {
	c := form(t, 1, nil)
	n := c.nodes["m1"]
	c.must(n, accept("a"))
	n.storeApplied()
	c.must(n, accept("b"))
	n.appliedStored.Store(^uint64(0)) // what a kill does to the last second
	c.stop("m1")
	n = c.start("m1")
	if _, ok := n.View().Key("a"); !ok {
		t.Error("a is forgotten")
	}
	c.eventually("b", func() (bool, string) {
		_, ok := n.View().Key("b")
		return ok, ""
	})
	c.must(n, accept("c"))
}
