package keydir

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// world is a cluster in miniature: real replicated state, real machines, disks that are maps, and a clock that moves
// when told to. Messages arrive late, twice answered or never.
type world struct {
	log   *state.State
	views []state.View // one per applied batch
	now   time.Time
	nodes []*simNode
	texts map[keyPrint]string
}

// simNode is a node: the files it has, the machine that looks after them, and what has been saved of it.
type simNode struct {
	id      node.ID
	w       *world
	files   map[simFile]simContent
	m       *machine
	saved   *base
	pos     int // index of the view it has
	flights [][]ready
	backup  map[simFile]simContent
}

type simFile struct {
	place place
	id    string
}

type simContent struct {
	print    keyPrint
	modified time.Time
}

func newWorld(nodes int, stale staleness) *world {
	w := &world{log: state.New(), now: time.UnixMilli(1_700_000_000_000), texts: map[keyPrint]string{}}
	r := w.log.ApplyCommands(state.Init{
		Identity: state.Identity{ClusterID: "c", UUID: "u", IdentityFP: "f"},
		Founder:  state.Member{ID: "n0", Addr: "127.0.0.1:4520", Fingerprint: strings.Repeat("0", 64), Weight: 1},
		EpochKey: state.NewSecret([]byte(epochKey)), SessionSeed: state.NewSecret(make([]byte, 32)),
		GossipKey: state.NewSecret(make([]byte, 32)),
	})
	if err := r[0].Err(); err != nil {
		panic(err)
	}
	if err := w.log.ApplyCommands(state.LevelSet{Level: state.Level})[0].Err(); err != nil {
		panic(err)
	}
	w.views = []state.View{w.log.View()}
	for i := range nodes {
		n := &simNode{id: node.ID(fmt.Sprint("n", i)), w: w, files: map[simFile]simContent{}}
		b := newBase(stale)
		n.saved = cloneBase(b)
		n.m = newMachine(n.id, Timing{}, b)
		w.nodes = append(w.nodes, n)
	}
	return w
}

// GoString keeps the log of a failed check readable.
func (n *simNode) GoString() string { return string(n.id) }

func cloneBase(b *base) *base {
	c := *b
	c.Keys, c.Denied = maps.Clone(b.Keys), maps.Clone(b.Denied)
	return &c
}

func (w *world) print(key string) keyPrint {
	p := printOf(key)
	w.texts[p] = key
	return p
}

func (w *world) apply(cmds ...state.Command) []state.Result {
	r := w.log.ApplyCommands(cmds...)
	w.views = append(w.views, w.log.View())
	return r
}

func (n *simNode) view() state.View { return n.w.views[n.pos] }

// put is what a stock master or an operator does to one file.
func (n *simNode) put(p place, id string, c keyPrint) {
	n.files[simFile{p, id}] = simContent{c, n.w.now}
}
func (n *simNode) del(p place, id string) { delete(n.files, simFile{p, id}) }
func (n *simNode) has(p place, id string) (keyPrint, bool) {
	c, ok := n.files[simFile{p, id}]
	return c.print, ok
}

// register does what _auth does to the files when no policy accepts (channel/server.py).
func (n *simNode) register(id, key string, auto bool) {
	pub := n.w.print(key)
	if _, ok := n.has(rejectedDir, id); ok {
		return
	}
	old, ok := n.has(acceptedDir, id)
	if ok {
		if old != pub {
			n.put(deniedDir, id, pub)
		}
		return
	}
	old, ok = n.has(pendingDir, id)
	switch {
	case ok && old != pub:
		n.put(deniedDir, id, pub)
	case auto:
		n.del(pendingDir, id)
		n.put(acceptedDir, id, pub)
	case !ok:
		n.put(pendingDir, id, pub)
	}
}

// move is salt-key -a or -r: a rename, so the file keeps its time.
func (n *simNode) move(from, to place, id string) {
	if c, ok := n.files[simFile{from, id}]; ok {
		n.files[simFile{to, id}] = c
		n.del(from, id)
	}
}

func (n *simNode) remove(id string) {
	for _, p := range keyPlaces {
		n.del(p, id)
	}
}

func (n *simNode) sight(id string) diskState {
	var s diskState
	for _, p := range keyPlaces {
		c, ok := n.files[simFile{p, id}]
		switch {
		case !ok:
		case s.key.entry != entry{}:
			s.key.twice = true
		default:
			s.key.entry, s.key.modified = entry{p.keyState(), c.print}, c.modified
		}
	}
	if c, ok := n.files[simFile{deniedDir, id}]; ok {
		s.denied.entry, s.denied.modified = entry{deniedState, c.print}, c.modified
	}
	return s
}

// ids is what loop.allIDs lists.
func (n *simNode) ids() []string {
	ids := map[string]struct{}{}
	for f := range n.files {
		ids[f.id] = struct{}{}
	}
	for id := range n.m.base.Keys {
		ids[id] = struct{}{}
	}
	for id := range n.m.base.Denied {
		ids[id] = struct{}{}
	}
	n.view().Keys(func(k state.Key) bool { ids[k.ID] = struct{}{}; return true })
	for _, k := range n.view().DeniedKeys() {
		ids[k.ID] = struct{}{}
	}
	return slices.Sorted(maps.Keys(ids))
}

// round is loop.runRound over everything. It reports whether it did something or waits for something.
func (n *simNode) round() (busy bool) {
	if n.view().Rev() < n.m.base.highestRev() && len(n.m.ahead) == 0 {
		return true // as after a restart: the log is still being read
	}
	p := n.m.planKeys(n.w.now, n.view(), n.sight, n.ids())
	var batch []ready
	for _, pr := range p.proposals {
		text := ""
		if pr.want != (entry{}) {
			text = n.w.texts[pr.from.Print]
		}
		batch = append(batch, ready{pr, n.m.buildCommand(n.w.now, pr, text)})
	}
	for _, w := range p.writes {
		for _, pl := range placesOf(w.subject) {
			n.del(pl, w.subject.id)
		}
		if w.want != (entry{}) {
			n.put(targetPlace(w), w.subject.id, n.w.print(w.text))
		}
		n.m.noteWritten(w)
	}
	if len(batch) > 0 {
		n.m.noteSent(n.w.now, proposalsOf(batch))
		n.flights = append(n.flights, batch)
	}
	n.m.advanceTo(n.view().Rev())
	if len(p.open) == 0 {
		n.m.endStaleness(n.view())
	}
	return len(p.writes)+len(p.proposals)+len(p.open) > 0
}

func proposalsOf(rs []ready) (ps []proposal) {
	for _, r := range rs {
		ps = append(ps, r.proposal)
	}
	return ps
}

type fate int

const (
	committed fate = iota // applied and answered
	unheard               // applied, the answer got lost
	lost                  // not applied
	fates
)

// land lets the oldest proposal on its way meet its fate.
func (n *simNode) land(f fate) {
	if len(n.flights) == 0 {
		return
	}
	batch := n.flights[0]
	n.flights = n.flights[1:]
	var results []state.Result
	if f != lost {
		var cmds []state.Command
		for _, r := range batch {
			cmds = append(cmds, r.command)
		}
		results = n.w.apply(cmds...)
	}
	for i, r := range batch {
		if f == committed {
			n.m.noteAnswered(n.w.now, r.proposal, results[i])
		} else {
			n.m.noteFailed(n.w.now, r.proposal)
		}
	}
}

// crash loses all but what was saved. What is on its way may still be applied.
func (n *simNode) crash(applied bool) {
	if applied {
		for _, batch := range n.flights {
			for _, r := range batch {
				n.w.apply(r.command)
			}
		}
	}
	n.flights = nil
	n.m = newMachine(n.id, Timing{}, cloneBase(n.saved))
}

func (n *simNode) save() { n.saved = cloneBase(n.m.base) }

// settle lets everything arrive everywhere until nothing changes any more. It returns what never came to rest.
func (w *world) settle() error {
	for range 60 {
		w.now = w.now.Add(6 * time.Second)
		busy := false
		for _, n := range w.nodes {
			n.pos = len(w.views) - 1
			busy = n.round() || busy
			for len(n.flights) > 0 {
				busy = true
				n.land(committed)
			}
		}
		if !busy {
			return w.check()
		}
	}
	return fmt.Errorf("no rest: %s", w.dump())
}

// check compares every disk with consensus.
func (w *world) check() error {
	view := w.views[len(w.views)-1]
	want := map[simFile]keyPrint{}
	view.Keys(func(k state.Key) bool {
		want[simFile{placeOf(k.State), k.ID}] = printOf(k.Pub)
		return true
	})
	for _, k := range view.DeniedKeys() {
		want[simFile{deniedDir, k.ID}] = printOf(k.Pub)
	}
	for _, n := range w.nodes {
		got := map[simFile]keyPrint{}
		for f, c := range n.files {
			got[f] = c.print
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("%s differs from consensus: %s", n.id, w.dump())
		}
	}
	return nil
}

func (w *world) dump() string {
	var b strings.Builder
	view := w.views[len(w.views)-1]
	fmt.Fprintf(&b, "\nconsensus rev %d:", view.Rev())
	view.Keys(func(k state.Key) bool { fmt.Fprintf(&b, " %s=%s:%s@%d", k.ID, k.State, k.Pub, k.Rev); return true })
	for _, k := range view.DeniedKeys() {
		fmt.Fprintf(&b, " %s=denied:%s@%d", k.ID, k.Pub, k.Rev)
	}
	for _, n := range w.nodes {
		fmt.Fprintf(&b, "\n%s seen %d stale %q:", n.id, n.m.base.Seen, n.m.base.Stale)
		for f, c := range n.files {
			fmt.Fprintf(&b, " %s/%s=%s", f.place, f.id, n.w.texts[c.print])
		}
		fmt.Fprintf(&b, " base %v denied %v ahead %v", n.m.base.Keys, n.m.base.Denied, n.m.ahead)
	}
	return b.String()
}
