package keydir

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/integration/patience"
)

// fleet is a node with n accepted keys m00, m01, … that holds losses.
func fleet(t *testing.T, n int) (*testNode, files) {
	t.Helper()
	node := newTestNode(t, "m1", newShared(t))
	node.found, node.holds = true, 10
	all := files{}
	for i := range n {
		id := fmt.Sprintf("m%02d", i)
		node.put(acceptedDir, id, keyTexts()[0])
		all["minions/"+id] = keyTexts()[0]
	}
	node.start()
	await(t, all, node)
	node.synced() // else a deletion may come before the node has noted what it deletes
	return node, all
}

func TestLosses_TooManyHeld(t *testing.T) {
	for name, c := range map[string]struct {
		fleet, lost int
		reject      bool
		unaccept    bool
		replace     bool
		held        bool
	}{
		"six of six":           {fleet: 6, lost: 6, held: true},
		"six of six, rejected": {fleet: 6, lost: 6, reject: true, held: true},
		"six of six, moved":    {fleet: 6, lost: 6, unaccept: true, held: true},
		"two of six, moved":    {fleet: 6, lost: 2, unaccept: true},
		"two of six":           {fleet: 6, lost: 2},
		"six of six, replaced": {fleet: 6, lost: 6, replace: true, held: true},
		"two of six, replaced": {fleet: 6, lost: 2, replace: true},
		"three of six":         {fleet: 6, lost: 3, held: true},
		"three of nine":        {fleet: 9, lost: 3},
		"three of three":       {fleet: 3, lost: 3, held: true},
		"two of three":         {fleet: 3, lost: 2, held: true},
		"one of three":         {fleet: 3, lost: 1},
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
				switch {
				case c.reject:
					node.move(acceptedDir, rejectedDir, id)
				case c.unaccept:
					node.move(acceptedDir, pendingDir, id)
				case c.replace:
					node.put(acceptedDir, id, keyTexts()[1])
				default:
					node.remove(acceptedDir, id)
				}
				if !c.held && c.replace {
					want["minions/"+id] = keyTexts()[1]
				} else if !c.held {
					delete(want, "minions/"+id)
				}
				if c.unaccept && !c.held {
					want["minions_pre/"+id] = all["minions/"+id]
				}
			}
			if c.held {
				patience.WaitFor(t, "they are held", func() bool { return slices.Equal(node.dir.Held(), ids) })
			}
			await(t, want, node)
			if c.held != (len(node.dir.Held()) > 0) {
				t.Errorf("held: %q", node.dir.Held())
			}
			for _, id := range ids {
				if key, ok := node.log.View().Key(id); c.held &&
					(!ok || key.State != state.KeyAccepted || key.Pub != keyTexts()[0]) {
					t.Errorf("%s is %q in the cluster", id, key.State)
				}
			}
		})
	}
}

// A single loss is held where a program takes keys away from minions that it does not see.
func TestLosses_AllHeld(t *testing.T) {
	for name, c := range map[string]struct {
		percent int
		takes   bool
		held    bool
	}{
		"a program takes keys": {percent: 10, takes: true, held: true},
		"none does":            {percent: 10},
		"a program takes keys, and nothing is held": {percent: 100, takes: true},
	} {
		t.Run(name, func(t *testing.T) {
			node := newTestNode(t, "m1", newShared(t))
			node.found, node.holds, node.all = true, c.percent, func() bool { return c.takes }
			want := files{"minions/a": keyTexts()[0], "minions/b": keyTexts()[0]}
			node.put(acceptedDir, "a", keyTexts()[0])
			node.put(acceptedDir, "b", keyTexts()[0])
			node.start()
			await(t, want, node)
			node.synced()
			node.remove(acceptedDir, "a")
			if c.held {
				patience.WaitFor(t, "it is held", func() bool { return slices.Equal(node.dir.Held(), []string{"a"}) })
			} else {
				delete(want, "minions/a")
			}
			await(t, want, node)
			if key, ok := node.log.View().Key("a"); ok != c.held || ok && key.State != state.KeyAccepted {
				t.Errorf("the key is %q in the cluster", key.State)
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
	patience.WaitFor(t, "they are held", func() bool { return len(node.dir.Held()) == 5 })
	await(t, all, node)
	v := node.log.View()
	if _, err := node.log.Propose(t.Context(), []state.Command{
		state.KeySet{ID: "m00", State: state.KeyDeleted, BaseRev: v.KeyRev("m00"), SeenRev: v.Rev(),
			Audit: state.Audit{By: "m1", Cause: "saltclusterctl"}},
	}); err != nil {
		t.Fatal(err)
	}
	delete(all, "minions/m00")
	await(t, all, node)
	patience.WaitFor(t, "what was decided about is not held", func() bool { return len(node.dir.Held()) == 4 })
	node.forget([]string{"m01", "m02", "m03", "m04"})
	node.put(pendingDir, "new", keyTexts()[1])
	all["minions_pre/new"] = keyTexts()[1]
	await(t, all, node)
	patience.WaitFor(t, "nothing is held", func() bool { return len(node.dir.Held()) == 0 })
	// In the same minute not one more goes, in the next ones again.
	node.remove(acceptedDir, "m01")
	patience.WaitFor(t, "it is held", func() bool { return len(node.dir.Held()) == 1 })
	await(t, all, node)
}

// lossMachine is a machine with accepted keys m00, m01, … and what a test does to them.
type lossMachine struct {
	*machine
	t    *testing.T
	log  *shared
	view state.View
	gone map[string]bool
	now  time.Time
}

func newLossMachine(t *testing.T, n, percent int) *lossMachine {
	t.Helper()
	node, _ := fleet(t, n)
	node.stop()
	l := &lossMachine{machine: newMachine("m1", Timing{}, newBase(fresh)), t: t, log: node.log, view: node.log.View(),
		gone: map[string]bool{}, now: time.Now()}
	l.losses.percent = percent
	l.view.Keys(func(k state.Key) bool {
		l.noteAgreed(subject{id: k.ID}, based{entry{k.State, printOf(k.Pub)}, k.Rev})
		return true
	})
	l.base.Seen = l.view.Rev()
	return l
}

// step lets time pass, deletes keys on disk and returns the machine's plan.
func (l *lossMachine) step(after time.Duration, lose ...string) plan {
	l.now = l.now.Add(after)
	for _, id := range lose {
		l.gone[id] = true
	}
	look := func(id string) diskState {
		if l.gone[id] {
			return diskState{}
		}
		key, _ := l.view.Key(id)
		return diskState{key: finding{entry: entry{key.State, printOf(key.Pub)}}}
	}
	return l.planKeys(l.now, l.view, look, slices.Sorted(maps.Keys(l.gone)))
}

// restore has a key on disk again.
func (l *lossMachine) restore(id string) {
	delete(l.gone, id)
	delete(l.edits, subject{id: id})
}

// decide changes a key in the cluster; one that is accepted is on disk, too.
func (l *lossMachine) decide(id string, st state.KeyState, cause string) {
	l.t.Helper()
	pub := ""
	if st == state.KeyAccepted {
		pub = keyTexts()[0]
		l.restore(id)
	}
	r, err := l.log.Propose(l.t.Context(), []state.Command{state.KeySet{
		ID: id, State: st, Pub: pub, BaseRev: l.view.KeyRev(id), SeenRev: l.view.Rev(),
		Audit: state.Audit{By: "m1", At: l.now.Add(-l.clockAhead).UnixMilli(), Cause: cause},
	}})
	if err != nil || r[0].Code != state.OK {
		l.t.Fatal(r, err)
	}
	l.view = l.log.View()
}

// Losses one after the other are judged together as long as each follows at once, and by those of the last minute.
func TestLosses_WaveAndMinute(t *testing.T) {
	m := newLossMachine(t, 6, 10)
	m.step(0, "m00", "m01")
	if p := m.step(100*time.Millisecond, "m02", "m03"); len(p.proposals)+len(p.writes) > 0 {
		t.Errorf("before anything has settled: %+v", p)
	}
	if p := m.step(50 * time.Millisecond); len(p.proposals)+len(p.writes) > 0 || p.next.IsZero() { // the first two have
		t.Errorf("while others follow: %+v", p)
	}
	if p := m.step(100 * time.Millisecond); len(p.proposals) > 0 || len(p.writes) != 4 {
		t.Errorf("four of six at once: %+v", p)
	}
	clear(m.gone)
	clear(m.edits)
	if p := m.step(time.Hour, "m04"); len(p.proposals)+len(p.writes) > 0 {
		t.Errorf("%+v", p)
	}
	if p := m.step(time.Second); len(p.writes) != 1 || p.writes[0].subject.id != "m04" {
		t.Errorf("one while others are held: %+v", p)
	}
	m.restore("m04")
	m.forgetHeld()
	m.step(time.Hour, "m05")
	if p := m.step(time.Second); len(p.proposals) != 1 || len(p.writes) > 0 {
		t.Errorf("one, an hour later: %+v", p)
	}
}

// Slow losses end when they would leave less than half of the accepted keys, and as long as something is held nothing
// else goes.
func TestLosses_Slow(t *testing.T) {
	for name, c := range map[string]struct {
		fleet, back, percent int // back: so many of those that went are accepted anew, each before the next goes
		pause                time.Duration
		gone                 int // how many go before one is held; all of them when none is
	}{
		"one a minute":              {fleet: 10, percent: 10, pause: 61 * time.Second, gone: 5},
		"one in 10 minutes":         {fleet: 10, percent: 10, pause: 10 * time.Minute, gone: 5},
		"three of the fleet":        {fleet: 4, percent: 10, pause: 61 * time.Second, gone: 3},
		"one in half an hour":       {fleet: 10, percent: 10, pause: 31 * time.Minute, gone: 10},
		"installed anew one by one": {fleet: 10, percent: 10, back: 10, pause: 61 * time.Second, gone: 10},
		"nothing is held":           {fleet: 10, percent: 100, pause: 61 * time.Second, gone: 10},
	} {
		t.Run(name, func(t *testing.T) {
			m := newLossMachine(t, c.fleet, c.percent)
			for i := range c.fleet {
				id := fmt.Sprintf("m%02d", i)
				m.step(c.pause, id)
				p := m.step(time.Second)
				if want := i < c.gone; (len(p.proposals) == 1) != want || (len(p.writes) == 1) == want {
					t.Fatalf("%s: %+v", id, p)
				}
				if i >= c.gone {
					m.restore(id)
					continue
				}
				m.decide(id, state.KeyDeleted, causeKeyFile)
				if i < c.back {
					m.decide(id, state.KeyAccepted, "saltclusterctl")
				}
			}
		})
	}
}

// What an operator confirms counts no more.
func TestLosses_Confirmed(t *testing.T) {
	m := newLossMachine(t, 20, 10)
	ids := []string{"m00", "m01", "m02", "m03"}
	m.step(0, ids...)
	if p := m.step(time.Second); len(p.writes) != 4 {
		t.Fatalf("%+v", p)
	}
	for _, id := range ids {
		m.restore(id)
		m.decide(id, state.KeyDeleted, "saltclusterctl")
	}
	m.step(time.Second, "m04", "m05", "m06")
	if p := m.step(time.Second); len(p.proposals) != 3 || len(p.writes) > 0 {
		t.Errorf("%+v", p)
	}
}

// A loss counts once, however often it is proposed: while another batch is on its way, or without a quorum.
func TestLosses_CountedOnce(t *testing.T) {
	m := newLossMachine(t, 6, 10)
	m.step(0, "m00")
	for i := range 200 {
		p := m.step(time.Second)
		if len(p.writes) > 0 || len(p.proposals) != 1 {
			t.Fatalf("try %d: %+v", i, p)
		}
		if i%2 == 0 {
			m.noteSent(m.now, p.proposals)
			m.noteFailed(m.now, p.proposals[0])
		}
	}
	// One an hour, none of which has come through.
	for i, id := range []string{"m01", "m02", "m03", "m04"} {
		m.step(time.Hour, id)
		if p := m.step(time.Second); len(p.writes) > 0 || len(p.proposals) != i+2 {
			t.Fatalf("%s: %+v", id, p)
		}
	}
}

// What other nodes' directories have lost counts, too.
func TestLossesOnSeveralNodes(t *testing.T) {
	for name, moved := range map[string]bool{"removed": false, "made pending": true} {
		t.Run(name, func(t *testing.T) { testLossesOnSeveralNodes(t, moved) })
	}
}

func testLossesOnSeveralNodes(t *testing.T, moved bool) {
	m1, all := fleet(t, 6)
	m2 := newTestNode(t, "m2", m1.log)
	m2.holds = 10
	m2.start()
	await(t, all, m1, m2)
	m2.synced()
	take := func(n *testNode, id string) {
		if moved {
			n.move(acceptedDir, pendingDir, id)
		} else {
			n.remove(acceptedDir, id)
		}
	}
	for _, id := range []string{"m00", "m01"} {
		take(m1, id)
		if moved {
			all["minions_pre/"+id] = all["minions/"+id]
		}
		delete(all, "minions/"+id)
	}
	await(t, all, m1, m2)
	m2.synced()
	for _, id := range []string{"m02", "m03"} {
		take(m2, id)
	}
	patience.WaitFor(t, "they are held", func() bool { return slices.Equal(m2.dir.Held(), []string{"m02", "m03"}) })
	await(t, all, m1, m2)
	if held := m1.dir.Held(); len(held) > 0 {
		t.Errorf("m1 holds %q", held)
	}
}

// Denied keys that are accepted in place of accepted ones, as salt-key does, are an operator's decision.
func TestLosses_DeniedAccepted(t *testing.T) {
	node, all := fleet(t, 6)
	for id := range all {
		name := strings.TrimPrefix(id, "minions/")
		node.put(deniedDir, name, keyTexts()[1])
		patience.WaitFor(t, "the cluster knows its denied key", func() bool {
			d, ok := node.log.View().Denied(name)
			return ok && d.Pub == keyTexts()[1]
		})
	}
	node.synced()
	for id := range all {
		node.move(deniedDir, acceptedDir, strings.TrimPrefix(id, "minions/"))
		all[id] = keyTexts()[1]
	}
	await(t, all, node)
	if held := node.dir.Held(); len(held) > 0 {
		t.Errorf("held: %q", held)
	}
}

// Losses before a restart count after it, and so do those of other nodes while this one was away.
func TestLossesAndRestarts(t *testing.T) {
	m1, all := fleet(t, 20)
	m2 := newTestNode(t, "m2", m1.log)
	m2.holds = 10
	m2.start()
	await(t, all, m1, m2)
	m2.synced()
	m2.stop()
	for _, id := range []string{"m00", "m01", "m02"} {
		m1.remove(acceptedDir, id)
		delete(all, "minions/"+id)
	}
	await(t, all, m1)
	m1.synced()
	m1.stop()
	for _, n := range []*testNode{m1, m2} {
		n.start()
		await(t, all, n)
		n.synced()
		n.remove(acceptedDir, "m03")
		patience.WaitFor(t, "the fourth in a minute is held", func() bool {
			return slices.Equal(n.dir.Held(), []string{"m03"})
		})
		await(t, all, n)
	}
}

// Held keys stay held while saltclusterd restarts, losses while it is away are held, and what the cluster decides
// meanwhile counts.
// forget drops what is held, which must be want.
func (n *testNode) forget(want []string) {
	n.t.Helper()
	if got, err := n.dir.Forget(n.t.Context()); err != nil || !slices.Equal(got, want) {
		n.t.Errorf("forgotten: %q, %v, want %q", got, err, want)
	}
	if held := n.dir.Held(); len(held) > 0 {
		n.t.Errorf("still held: %q", held)
	}
}

func TestHeldKeysAndRestarts(t *testing.T) {
	node, all := fleet(t, 6)
	node.stop()
	ids := []string{"m00", "m01", "m02", "m03"}
	for _, id := range ids {
		node.remove(acceptedDir, id)
	}
	node.start()
	patience.WaitFor(t, "they are held", func() bool { return slices.Equal(node.dir.Held(), ids) })
	await(t, all, node)
	node.stop()
	for _, st := range []state.KeyState{state.KeyDeleted, state.KeyAccepted} { // decided about: m00 has another life
		node.log.ApplyAs(t, "m00", st, keyTexts()[0])
	}
	node.start()
	patience.WaitFor(t, "they are still held", func() bool { return slices.Equal(node.dir.Held(), ids[1:]) })
	node.forget(ids[1:])
	node.stop()
	node.start()
	if held := node.dir.Held(); len(held) > 0 {
		t.Errorf("held again: %q", held)
	}
}

// A 3008 master with mmap_key deletes keys in its store, where they are restored as well.
func TestLossesInAStore(t *testing.T) {
	node := withStore(newTestNode(t, "m1", newShared(t)))
	node.found, node.holds = true, 10
	node.start()
	all := files{}
	for i := range 6 {
		id := fmt.Sprintf("m%02d", i)
		node.saltKey(mmapkeys.Accepted, id, keyTexts()[0])
		all["minions/"+id] = keyTexts()[0]
	}
	awaitStore(t, all, node)
	node.synced()
	for id := range all {
		node.saltKey(0, strings.TrimPrefix(id, "minions/"), "")
	}
	patience.WaitFor(t, "they are held", func() bool { return len(node.dir.Held()) == 6 })
	awaitStore(t, all, node)
}

// Nodes that share directories hand what is held on with them, and only the keeper lists it.
func TestHeldKeysOfAShare(t *testing.T) {
	nodes := sharing(t, newShared(t), "m1", "m2")
	nodes[0].stop()
	nodes[1].stop()
	nodes[0].holds, nodes[1].holds = 10, 10
	nodes[0].start()
	all := files{}
	for i := range 5 {
		id := fmt.Sprintf("m%02d", i)
		nodes[0].put(acceptedDir, id, keyTexts()[0])
		all["minions/"+id] = keyTexts()[0]
	}
	await(t, all, nodes[0])
	nodes[0].synced()
	nodes[1].open()
	for i := range 5 {
		nodes[0].remove(acceptedDir, fmt.Sprintf("m%02d", i))
	}
	patience.WaitFor(t, "they are held", func() bool { return len(nodes[0].dir.Held()) == 5 })
	await(t, all, nodes...)
	if held := nodes[1].dir.Held(); len(held) > 0 {
		t.Errorf("a node that is not the keeper holds %q", held)
	}
	nodes[0].stop()
	patience.WaitFor(t, "the next keeper holds them", func() bool { return len(nodes[1].dir.Held()) == 5 })
}
