package keydir

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/require"
)

// epochKey has the shape of Salt's key text.
var epochKey = strings.Repeat("A", 75) + "="

var simIDs = []string{"web", "db", "mail"}

func (w *world) node(t *rapid.T) *simNode { return rapid.SampledFrom(w.nodes).Draw(t, "node") }
func anID(t *rapid.T) string              { return rapid.SampledFrom(simIDs).Draw(t, "id") }
func aKey(t *rapid.T, id string) string {
	return fmt.Sprintf("%s-key-%d", id, rapid.IntRange(0, 2).Draw(t, "key"))
}

// edits are what stock masters and operators do.
func (w *world) edits() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"register":        func(t *rapid.T) { id := anID(t); w.node(t).register(id, aKey(t, id), false) },
		"autosign":        func(t *rapid.T) { id := anID(t); w.node(t).register(id, aKey(t, id), true) },
		"accept":          func(t *rapid.T) { w.node(t).move(pendingDir, acceptedDir, anID(t)) },
		"reject":          func(t *rapid.T) { w.node(t).move(pendingDir, rejectedDir, anID(t)) },
		"reject accepted": func(t *rapid.T) { w.node(t).move(acceptedDir, rejectedDir, anID(t)) },
		"accept denied":   func(t *rapid.T) { w.node(t).move(deniedDir, acceptedDir, anID(t)) },
		"delete":          func(t *rapid.T) { w.node(t).remove(anID(t)) },
		"delete denied":   func(t *rapid.T) { w.node(t).del(deniedDir, anID(t)) },
		"replace": func(t *rapid.T) {
			id := anID(t)
			w.node(t).put(acceptedDir, id, w.print(aKey(t, id)))
		},
	}
}

// machinery is what the program, the network and fate do.
func (w *world) machinery() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"time": func(t *rapid.T) {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "ms")) * time.Millisecond)
		},
		"deliver": func(t *rapid.T) {
			n := w.node(t)
			n.pos = rapid.IntRange(n.pos, len(w.views)-1).Draw(t, "pos")
		},
		"round":  func(t *rapid.T) { w.node(t).round() },
		"round2": func(t *rapid.T) { w.node(t).round() },
		"land": func(t *rapid.T) {
			w.node(t).land(fate(rapid.IntRange(0, int(fates)-1).Draw(t, "fate")))
		},
		"save":  func(t *rapid.T) { w.node(t).save() },
		"crash": func(t *rapid.T) { w.node(t).crash(rapid.Bool().Draw(t, "applied")) },
		"prune": func(t *rapid.T) {
			w.apply(state.TombstonesPrune{UpToRev: w.log.View().Rev(), Keep: rapid.IntRange(0, 2).Draw(t, "keep")})
		},
	}
}

// disasters replace a node's files.
func (w *world) disasters() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"backup": func(t *rapid.T) { n := w.node(t); n.backup = maps.Clone(n.files) },
		"restore": func(t *rapid.T) {
			if n := w.node(t); n.backup != nil {
				n.files = maps.Clone(n.backup)
				n.m.markStale() // the marker comes from the backup, too
				n.saved.Stale = joining
			}
		},
		"wipe": func(t *rapid.T) {
			n := w.node(t)
			n.files = map[simFile]simContent{}
			n.m.markStale()
			n.saved.Stale = joining
		},
		"lose base": func(t *rapid.T) {
			n := w.node(t)
			n.saved = newBase(joining)
			n.crash(true)
		},
	}
}

func merge(ms ...map[string]func(*rapid.T)) map[string]func(*rapid.T) {
	out := map[string]func(*rapid.T){}
	for _, m := range ms {
		maps.Copy(out, m)
	}
	return out
}

// TestAllConverge: whatever is done wherever, with whatever fate, all nodes end with what consensus says.
func TestAllConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(1, 4).Draw(t, "nodes"),
			rapid.SampledFrom([]staleness{fresh, joining, found}).Draw(t, "stale"))
		t.Repeat(merge(w.edits(), w.machinery(), w.disasters()))
		require.NoError(t, w.settle())
	})
}

// TestDeletedStaysDeleted: after some history every key is deleted on one node. Whatever nodes do from then on short of
// somebody registering or accepting anew, no key is left anywhere.
func TestDeletedStaysDeleted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(3, fresh)
		for range rapid.IntRange(1, 12).Draw(t, "history") {
			for _, acts := range []map[string]func(*rapid.T){w.edits(), w.machinery()} {
				names := []string{"register", "autosign", "accept", "reject", "replace", "delete", "time", "deliver", "round",
					"land", "save"}
				if act := acts[rapid.SampledFrom(names).Draw(t, "act")]; act != nil {
					act(t)
				}
			}
		}
		for _, n := range w.nodes {
			n.backup = maps.Clone(n.files)
		}
		require.NoError(t, w.settle())
		// Two nodes may be away while the first deletes everything.
		w.now = w.now.Add(time.Hour)
		for _, id := range simIDs {
			w.nodes[0].remove(id)
		}
		for range 6 {
			w.now = w.now.Add(time.Second)
			w.nodes[0].pos = len(w.views) - 1
			w.nodes[0].round()
			w.nodes[0].land(committed)
		}
		if c := w.log.View().KeyCount(); c != 0 {
			t.Fatalf("%d keys left after the deletion: %s", c, w.dump())
		}
		acts := merge(w.machinery(), map[string]func(*rapid.T){
			"restore": w.disasters()["restore"],
			"wipe":    w.disasters()["wipe"],
			"partial restore": func(t *rapid.T) { // as tar does: files come back with their old times, the marker stays
				n := w.node(t)
				for f, c := range n.backup {
					if f.place != deniedDir && rapid.Bool().Draw(t, "file") {
						n.files[f] = c
					}
				}
			},
		})
		if rapid.Bool().Draw(t, "tombstones are pruned") {
			delete(acts, "partial restore") // nothing remembers then that the file is a left-over
		} else {
			delete(acts, "prune")
		}
		t.Repeat(acts)
		require.NoError(t, w.settle())
		if c := w.log.View().KeyCount(); c > 0 {
			w.log.View().Keys(func(k state.Key) bool {
				if k.State == state.KeyAccepted {
					t.Fatalf("a deleted key is back: %s", w.dump())
				}
				return true
			})
		}
	})
}

// TestDeletedComesBackPending: after some history every key is deleted on one node, while others are away or end before
// they have noted what they wrote. The minions come again with the keys that they had, wherever: none of them is
// accepted.
func TestDeletedComesBackPending(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(3, fresh)
		acts := merge(w.edits(), w.machinery())
		history := []string{"register", "autosign", "accept", "reject", "replace", "delete", "time", "deliver", "round",
			"land", "save"}
		for range rapid.IntRange(1, 20).Draw(t, "history") {
			acts[rapid.SampledFrom(history).Draw(t, "act")](t)
		}
		require.NoError(t, w.settle())
		w.now = w.now.Add(time.Hour)
		for _, id := range simIDs {
			w.nodes[0].remove(id)
		}
		for range 6 {
			w.now = w.now.Add(time.Second)
			w.nodes[0].pos = len(w.views) - 1
			w.nodes[0].round()
			w.nodes[0].land(committed)
		}
		if c := w.log.View().KeyCount(); c != 0 {
			t.Fatalf("%d keys left after the deletion: %s", c, w.dump())
		}
		t.Repeat(merge(w.machinery(), w.disasters(), map[string]func(*rapid.T){
			"restore": func(*rapid.T) {}, // that of files alone, and without a memory of their deletion, is no promise
			"backup":  func(*rapid.T) {},
			"register": func(t *rapid.T) {
				id := anID(t)
				w.node(t).register(id, aKey(t, id), false)
			},
		}))
		require.NoError(t, w.settle())
		w.log.View().Keys(func(k state.Key) bool {
			if k.State == state.KeyAccepted {
				t.Fatalf("a deleted key is accepted again: %s", w.dump())
			}
			return true
		})
	})
}

// TestNoEditIsLost: while one node only is edited, its last edits are what the cluster ends with, however answers get
// lost.
func TestNoEditIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(2, fresh)
		editor := w.nodes[0]
		all := w.nodes
		edits := w.edits()
		for name, f := range edits {
			edits[name] = func(t *rapid.T) {
				w.nodes = all[:1]
				f(t)
				w.nodes = all
			}
		}
		acts := merge(edits, w.machinery())
		delete(acts, "crash")
		delete(acts, "prune")
		t.Repeat(acts)
		want := map[string]entry{}
		for _, id := range simIDs {
			want[id] = editor.sight(id).key.entry
		}
		require.NoError(t, w.settle())
		for _, id := range simIDs {
			if got := editor.sight(id).key.entry; got != want[id] {
				t.Fatalf("%s was %v and became %v: %s", id, want[id], got, w.dump())
			}
		}
	})
}

// TestFirstLife: what consensus must say for a decision on disk to count that base does not know of.
func TestFirstLife(t *testing.T) {
	set := func(s state.KeyState) state.Command { return state.KeySet{ID: "web", State: s, Pub: "web-key-0"} }
	prune := state.TombstonesPrune{UpToRev: 1 << 60}
	for name, c := range map[string]struct {
		history []state.Command
		seen    int // commands that base has seen
		want    bool
	}{
		"new": {[]state.Command{set(state.KeyPending)}, 0, true},
		"came again": {[]state.Command{set(state.KeyAccepted), set(state.KeyDeleted),
			set(state.KeyPending)}, 0, false},
		"came again, and seen deleted": {[]state.Command{set(state.KeyAccepted), set(state.KeyDeleted),
			set(state.KeyPending)}, 2, false},
		"came again, which is forgotten": {[]state.Command{set(state.KeyAccepted), set(state.KeyDeleted), prune,
			set(state.KeyPending)}, 0, false},
		"came again, and seen deleted long before": {[]state.Command{set(state.KeyAccepted), set(state.KeyDeleted), prune,
			set(state.KeyPending)}, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1, fresh)
			for i, cmd := range c.history {
				if i == c.seen {
					w.nodes[0].m.base.Seen = w.log.View().Rev()
				}
				if k, ok := cmd.(state.KeySet); ok {
					k.BaseRev, k.SeenRev = w.log.View().KeyRev("web"), w.log.View().Rev()
					cmd = k
				}
				require.NoError(t, w.apply(cmd)[0].Err())
			}
			if k, _ := w.nodes[0].m.stateOf(w.log.View(), subject{id: "web"}, finding{}); k.first != c.want {
				t.Errorf("first: %v", k.first)
			}
		})
	}
}
