package datacache

import (
	"fmt"
	"os"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"

	"pgregory.net/rapid"
)

// Whatever happens to whom in which order, in the end every master has what was written last.
func TestNodesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "datacache")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		w := newWorld(t)
		defer w.close()
		var nodes []*testNode
		for i, major := range []int{3006, 3007, 3008} {
			id := node.ID(rune('a' + i))
			nodes = append(nodes, w.add(id, major, dir+"/"+string(id)))
		}
		last := map[string]string{}
		for i := range rapid.IntRange(1, 12).Draw(t, "steps") {
			id := rapid.SampledFrom([]string{"m1", "m2", "a:b"}).Draw(t, "minion")
			n := rapid.SampledFrom(nodes).Draw(t, "node")
			switch rapid.SampledFrom([]string{"write", "write", "write", "cut", "join", "restart", "delete"}).Draw(t, "op") {
			case "write":
				w.setKey(id, "k")
				last[id] = fmt.Sprint(i)
				n.stock(id, texts("g", last[id]), texts("p", last[id]))
				n.store.lookAt([]string{id})
			case "cut":
				w.Cut(n.id, true)
			case "join":
				w.Cut(n.id, false)
			case "restart":
				n.close()
				n.open()
			case "delete":
				w.setKey(id, "")
				delete(last, id)
				for _, o := range nodes {
					w.poll("purged", func() bool {
						turn := o.store.turns.of(id) // or it is still at it, and removes what comes next
						turn.Lock()
						defer turn.Unlock()
						g, _ := o.has(id)
						return g == nil
					})
				}
			}
		}
		for _, n := range nodes {
			w.Cut(n.id, false)
		}
		for id, v := range last {
			w.everywhere(id, texts("g", v), texts("p", v))
		}
	})
}
