package keydir

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"saltclusterd/consensus/state"
)

// fleet is a node with n accepted keys m00, m01, … that holds losses.
func fleet(t *testing.T, n int) (*testNode, files) {
	t.Helper()
	node := newTestNode(t, "m1", newShared(t))
	node.found, node.holds = true, true
	all := files{}
	for i := range n {
		id := fmt.Sprintf("m%02d", i)
		node.put(acceptedDir, id, keyTexts()[0])
		all["minions/"+id] = keyTexts()[0]
	}
	node.start()
	await(t, all, node)
	return node, all
}

func TestTooManyLostKeysAreWrittenBack(t *testing.T) {
	for name, c := range map[string]struct {
		fleet, lost int
		reject      bool
		held        bool
	}{
		"six of six":           {fleet: 6, lost: 6, held: true},
		"six of six, rejected": {fleet: 6, lost: 6, reject: true, held: true},
		"three of six":         {fleet: 6, lost: 3},
		"four of six":          {fleet: 6, lost: 4, held: true},
		"five of sixty":        {fleet: 60, lost: 5},
		"seven of sixty":       {fleet: 60, lost: 7, held: true},
		"one of one":           {fleet: 1, lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			node, all := fleet(t, c.fleet)
			want := maps.Clone(all)
			var ids []string
			for i := range c.lost {
				id := fmt.Sprintf("m%02d", i)
				ids = append(ids, id)
				if c.reject {
					node.move(acceptedDir, rejectedDir, id)
				} else {
					node.remove(acceptedDir, id)
				}
				if !c.held {
					delete(want, "minions/"+id)
				}
			}
			if c.held {
				poll(t, "they are held", func() bool { return slices.Equal(node.dir.Held(), ids) })
			}
			await(t, want, node)
			if c.held != (len(node.dir.Held()) > 0) {
				t.Errorf("held: %q", node.dir.Held())
			}
			for _, id := range ids {
				if key, ok := node.log.View().Key(id); c.held && (!ok || key.State != state.KeyAccepted) {
					t.Errorf("%s is %q in the cluster", id, key.State)
				}
			}
		})
	}
}

// Who decides about held keys in the cluster is obeyed, and what is forgotten stays.
func TestHeldKeysAreDecidedAbout(t *testing.T) {
	node, all := fleet(t, 5)
	for i := range 5 {
		node.remove(acceptedDir, fmt.Sprintf("m%02d", i))
	}
	poll(t, "they are held", func() bool { return len(node.dir.Held()) == 5 })
	await(t, all, node)
	v := node.log.View()
	if _, err := node.log.Propose(t.Context(), []state.Command{
		state.KeySet{ID: "m00", State: state.KeyDeleted, BaseRev: v.KeyRev("m00"), SeenRev: v.Rev(), Audit: state.Audit{By: "m1", Cause: "saltclusterctl"}},
	}); err != nil {
		t.Fatal(err)
	}
	delete(all, "minions/m00")
	await(t, all, node)
	poll(t, "what was decided about is not held", func() bool { return len(node.dir.Held()) == 4 })
	node.dir.Forget()
	node.put(pendingDir, "new", keyTexts()[1])
	all["minions_pre/new"] = keyTexts()[1]
	await(t, all, node)
	poll(t, "nothing is held", func() bool { return len(node.dir.Held()) == 0 })
	// In the same minute not one more goes, in the next ones again.
	node.remove(acceptedDir, "m01")
	poll(t, "it is held", func() bool { return len(node.dir.Held()) == 1 })
	await(t, all, node)
}

// Losses one after the other are judged together as long as each follows at once, and by those of the last minute.
func TestLossesOfOneWaveAndOneMinute(t *testing.T) {
	node, _ := fleet(t, 6)
	node.stop()
	m := newMachine("m1", Timing{}, newBase(fresh))
	m.losses.on = true
	view := node.log.View()
	view.Keys(func(k state.Key) bool {
		m.agree(subject{id: k.ID}, based{entry{k.State, printOf(k.Pub)}, k.Rev})
		return true
	})
	m.base.Seen = view.Rev()
	gone := map[string]bool{}
	look := func(id string) sight {
		if gone[id] {
			return sight{}
		}
		key, _ := view.Key(id)
		return sight{key: finding{entry: entry{key.State, printOf(key.Pub)}}}
	}
	now := time.Now()
	step := func(after time.Duration, lose ...string) plan {
		now = now.Add(after)
		for _, id := range lose {
			gone[id] = true
		}
		return m.plan(now, view, look, slices.Sorted(maps.Keys(gone)))
	}
	step(0, "m00", "m01")
	if p := step(100*time.Millisecond, "m02", "m03"); len(p.proposals)+len(p.writes) > 0 {
		t.Errorf("before anything has settled: %+v", p)
	}
	if p := step(50 * time.Millisecond); len(p.proposals)+len(p.writes) > 0 || p.next.IsZero() { // the first two have
		t.Errorf("while others follow: %+v", p)
	}
	if p := step(100 * time.Millisecond); len(p.proposals) > 0 || len(p.writes) != 4 {
		t.Errorf("four of six at once: %+v", p)
	}
	clear(gone)
	clear(m.edits)
	if p := step(time.Hour, "m00"); len(p.proposals)+len(p.writes) > 0 {
		t.Errorf("%+v", p)
	}
	if p := step(time.Second); len(p.proposals) != 1 || len(p.writes) > 0 {
		t.Errorf("one, an hour later: %+v", p)
	}
}
