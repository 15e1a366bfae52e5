package keydir

import (
	"slices"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// machine decides. It has no clock, no disk and no goroutines: it is given what a look found and the view, and returns
// what to write and what to propose; it is told what became of that. Not safe for concurrent use.
type machine struct {
	node   node.ID
	now    time.Time // of the present round, by this host's clock
	timing Timing
	// clockAhead is how far this host's clock, which files are dated with, is ahead of the cluster's, which decisions are.
	clockAhead time.Duration

	base  *base
	dirty bool // base changed since it was saved

	flying     map[subject]flight    // proposed, outcome not known yet
	uncertain  map[subject][]flight  // proposed, and their outcome is not known
	ahead      map[subject]uint64    // the view must reach this revision before it says something about the subject
	later      map[subject]time.Time // not to be proposed again before
	edits      map[subject]edit      // edits that have not settled
	lastDenied map[string]time.Time  // when a denied key of an id was last proposed
	losses     losses
}

// flight is a proposal on its way.
type flight struct {
	want entry
	rev  uint64 // its precondition
	at   time.Time
}

// edit is a difference on disk and since when it looks like that.
type edit struct {
	finding finding
	since   time.Time
}

func newMachine(id node.ID, t Timing, b *base) *machine {
	return &machine{
		node: id, timing: t.withDefaults(), base: b,
		flying: map[subject]flight{}, uncertain: map[subject][]flight{}, ahead: map[subject]uint64{},
		later: map[subject]time.Time{},
		edits: map[subject]edit{}, lastDenied: map[string]time.Time{},
	}
}

// writing is a decision of consensus on its way to disk.
type writing struct {
	subject   subject
	want      entry
	text      string // of the key; empty for a deletion
	rev       uint64
	overruled bool
	why       string
	finding   finding // what it replaces
}

// proposal is an edit on its way to consensus. The text of the key is still to be read from disk.
type proposal struct {
	subject subject
	want    entry
	from    entry // what to read the text from
	rev     uint64
	seen    uint64
	clear   string // denied keys: the text of the one to clear
	extra   bool   // a denied key that does not come from minions_denied
	why     string
}

// plan is what a round has to do.
type plan struct {
	writes    []writing
	proposals []proposal
	open      []string  // ids to look at again
	next      time.Time // when, if nothing happens; zero: when something happens
}

func (p *plan) lookAgain(id string, at time.Time) {
	p.open = append(p.open, id)
	if !at.IsZero() && (p.next.IsZero() || at.Before(p.next)) {
		p.next = at
	}
}

// planKeys decides about ids. look tells what is on disk, view what consensus says.
func (m *machine) planKeys(now time.Time, view state.View, look func(id string) diskState, ids []string) plan {
	var p plan
	m.now = now
	m.countLosses(now, view)
	for _, id := range ids {
		s := look(id)
		m.planOne(&p, now, view, subject{id: id}, s)
		m.planOne(&p, now, view, subject{id: id, denied: true}, s)
	}
	m.holdLosses(&p, now, view, look)
	return p
}

func (m *machine) planOne(p *plan, now time.Time, view state.View, s subject, look diskState) {
	if rev := m.ahead[s]; rev > view.Rev() {
		p.lookAgain(s.id, time.Time{})
		return
	}
	delete(m.ahead, s)
	f := look.findingFor(s)
	k, text := m.stateOf(view, s, f)
	if m.noteArrived(s, k) {
		k, text = m.stateOf(view, s, f)
	}
	d := decideStep(k)
	switch d.verdict {
	case adopt:
		m.noteAgreed(s, based{k.cons, k.rev})
		fallthrough
	case leave:
		delete(m.edits, s)
		delete(m.later, s)
		m.dropStale(s, k)
		return
	}
	if wait := m.waitUntil(now, s, f, k, d); !wait.IsZero() {
		p.lookAgain(s.id, wait)
		return
	}
	switch d.verdict {
	case write:
		m.planWrite(p, s, f, k, d, text)
	case propose:
		m.planProposal(p, now, s, k, d, view, text)
	case unclear:
		if k.cons != (entry{}) {
			m.planWrite(p, s, f, k, step{verdict: write, want: k.cons, overruled: true, why: "no key in the file"}, text)
		}
	}
}

// noteArrived recognises a proposal of this node in the view before its answer came, or when none ever came. An edit
// made since then is an edit of that, and must not look as if the key had been changed elsewhere meanwhile.
func (m *machine) noteArrived(s subject, k keyState) bool {
	applied := func(f flight) bool { return f.cameTrue(k) }
	if f, ok := m.flying[s]; ok && applied(f) || slices.ContainsFunc(m.uncertain[s], applied) {
		delete(m.uncertain, s)
		return m.noteAgreed(s, based{k.cons, k.rev})
	}
	return false
}

// dropStale forgets proposals that cannot come true any more: their precondition has gone by.
func (m *machine) dropStale(s subject, k keyState) {
	left := slices.DeleteFunc(m.uncertain[s], func(f flight) bool { return f.rev != k.rev })
	if len(left) == 0 {
		delete(m.uncertain, s)
		return
	}
	m.uncertain[s] = left
}

// cameTrue says whether consensus has what was proposed, since then.
func (f flight) cameTrue(k keyState) bool { return k.cons == f.want && k.rev != f.rev }

func (m *machine) planWrite(p *plan, s subject, f finding, k keyState, d step, text string) {
	p.writes = append(p.writes, writing{
		subject: s, want: d.want, text: text, rev: k.rev, overruled: d.overruled, why: d.why, finding: f,
	})
	if d.deny && !s.denied {
		p.proposals = append(p.proposals, proposal{
			subject: subject{s.id, true}, want: entry{deniedState, k.disk.Print}, from: k.disk, extra: true,
			why: "another key was chosen",
		})
	}
}

func (m *machine) planProposal(p *plan, now time.Time, s subject, k keyState, d step, view state.View, text string) {
	if _, flying := m.flying[s]; flying {
		p.lookAgain(s.id, time.Time{})
		return
	}
	if at := m.later[s]; now.Before(at) {
		p.lookAgain(s.id, at)
		return
	}
	if at := m.lastDenied[s.id].Add(deniedEvery); s.denied && d.want != (entry{}) && now.Before(at) {
		p.lookAgain(s.id, at)
		return
	}
	seen := m.base.Seen
	if m.base.Stale != fresh {
		seen = view.Rev() // what is proposed from a stale disk is pending, or all there is
	}
	p.proposals = append(p.proposals, proposal{
		subject: s, want: d.want, from: k.disk, rev: k.rev, seen: seen, clear: text, why: d.why,
	})
	p.lookAgain(s.id, time.Time{})
}
