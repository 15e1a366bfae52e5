package state

import (
	"errors"
	"slices"

	"saltclusterd/gossip/node"
)

// RootsPropose ("roots.propose") puts a new revision of the file and pillar
// trees in force, or on hold.
//
// Parent is the precondition: the revision in force at the proposer, zero when
// there is none. Anything else is a conflict and changes nothing.
//
// Nodes of a version that does not know this command must not skip it, because
// they would forget what was agreed. So it is not proposed before all members
// know it.
//
// With Held the revision is recorded and waits for roots.confirm or
// roots.drop; the one in force stays. A node has at most one on hold: whatever
// it proposes next replaces it.
type RootsPropose struct {
	Parent uint64     `json:"parent,omitempty"`
	Author node.ID    `json:"author"`
	Root   string     `json:"root"` // 64 lower-case hex digits
	Kind   string     `json:"kind,omitempty"`
	Held   bool       `json:"held,omitempty"`
	Stats  RootsStats `json:"stats"`
	Note   string     `json:"note,omitempty"`
	Audit
}

// Type implements Command.
func (RootsPropose) Type() string { return "roots.propose" }

// Validate implements Command.
func (c RootsPropose) Validate() error {
	return errors.Join(
		validNode(c.Author),
		validRoot(c.Root),
		validText("kind", c.Kind, MaxRootsKind),
		validText("note", c.Note, MaxText),
		c.Stats.validate(),
		c.Audit.validate(),
	)
}

func (c RootsPropose) applyTo(d *data) Result {
	head, ok := d.roots.currentRevision()
	if c.Parent != d.roots.head {
		return refuse(Conflict, d.roots.head, "revision %d of the trees is in force, the proposal is based on %d",
			d.roots.head, c.Parent)
	}
	if ok && !c.Held && head.Root == c.Root {
		return Result{Rev: head.Number}
	}
	list := slices.DeleteFunc(slices.Clone(d.roots.list), func(r RootsRevision) bool {
		return r.State == RootsHeld && r.Author == c.Author
	})
	if c.Held && countHeld(list) >= MaxRootsHeld {
		return refuse(LimitReached, d.roots.head, "%d revisions wait for a confirmation, the maximum", MaxRootsHeld)
	}
	d.nextRevision()
	r := RootsRevision{
		Number: d.roots.last + 1, Parent: c.Parent, Root: c.Root, Kind: c.Kind, Author: c.Author,
		Stats: c.Stats, Note: c.Note, Audit: c.Audit,
	}
	next := rootsData{last: r.Number, head: r.Number}
	if c.Held {
		r.State, next.head = RootsHeld, d.roots.head
	}
	next.list = trimRoots(append(list, r), next.head)
	d.roots = next
	return Result{Rev: r.Number}
}

// RootsConfirm ("roots.confirm") puts a revision in force that was on hold. It
// must be based on the one in force.
type RootsConfirm struct {
	Number uint64 `json:"number"`
	Audit
}

// Type implements Command.
func (RootsConfirm) Type() string { return "roots.confirm" }

// Validate implements Command.
func (c RootsConfirm) Validate() error { return c.Audit.validate() }

func (c RootsConfirm) applyTo(d *data) Result {
	i, refusal := d.roots.findHeld(c.Number)
	if refusal != nil {
		return *refusal
	}
	if parent := d.roots.list[i].Parent; parent != d.roots.head {
		return refuse(Conflict, d.roots.head,
			"revision %d is based on %d, but %d is in force now: its author proposes it again",
			c.Number, parent, d.roots.head)
	}
	d.nextRevision()
	list := slices.Clone(d.roots.list)
	list[i].State = RootsActive
	d.roots = rootsData{last: d.roots.last, head: c.Number, list: list}
	return Result{Rev: c.Number}
}

// RootsDrop ("roots.drop") refuses a revision that was on hold.
type RootsDrop struct {
	Number uint64 `json:"number"`
	Audit
}

// Type implements Command.
func (RootsDrop) Type() string { return "roots.drop" }

// Validate implements Command.
func (c RootsDrop) Validate() error { return c.Audit.validate() }

func (c RootsDrop) applyTo(d *data) Result {
	i, refusal := d.roots.findHeld(c.Number)
	if refusal != nil {
		return *refusal
	}
	d.nextRevision()
	list := slices.Clone(d.roots.list)
	list[i].State = RootsDropped
	d.roots.list = trimRoots(list, d.roots.head)
	return Result{Rev: c.Number}
}

// findHeld finds a revision that is on hold.
func (t rootsData) findHeld(number uint64) (int, *Result) {
	i := slices.IndexFunc(t.list, func(r RootsRevision) bool { return r.Number == number })
	switch {
	case i < 0:
		r := refuse(NotFound, 0, "there is no revision %d of the trees", number)
		return 0, &r
	case t.list[i].State != RootsHeld:
		r := refuse(Conflict, number, "revision %d does not wait for a confirmation", number)
		return 0, &r
	}
	return i, nil
}

func countHeld(list []RootsRevision) int {
	n := 0
	for _, r := range list {
		if r.State == RootsHeld {
			n++
		}
	}
	return n
}

// trimRoots forgets the oldest revisions beyond MaxRoots, never the one in
// force nor one on hold.
func trimRoots(list []RootsRevision, head uint64) []RootsRevision {
	for i := 0; len(list) > MaxRoots && i < len(list); {
		if list[i].Number == head || list[i].State == RootsHeld {
			i++
			continue
		}
		list = slices.Delete(list, i, i+1)
	}
	return list
}

func validRoot(root string) error {
	if err := validFingerprint(root); err != nil {
		return errors.New("root is not 64 lower-case hex digits")
	}
	return nil
}

func (s RootsStats) validate() error {
	if min(s.Files, s.Bytes, s.Changed, s.Removed) < 0 {
		return errors.New("negative statistics")
	}
	return nil
}
