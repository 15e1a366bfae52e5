package apply

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"saltclusterd/fsync/scan"
	"saltclusterd/fsync/tree"
)

// Make plans how a slot gets from what a scan has seen to another tree. Aside tells of paths whose present content is
// to be put aside, and why.
func Make(o tree.Objects, slot tree.Slot, from, to tree.Hash, live scan.Index,
	aside func(path string) string) (Plan, error) {
	p := &planner{live: live, aside: aside, names: map[string]int{}}
	if err := tree.Diff(o, from, to, p.planChange); err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", slot, err)
	}
	slices.SortStableFunc(p.ops, func(a, b Op) int {
		if c := cmp.Compare(a.phase(), b.phase()); c != 0 {
			return c
		}
		if a.Verb == RemoveDir { // the deepest first
			return strings.Compare(b.Path, a.Path)
		}
		return strings.Compare(a.Path, b.Path)
	})
	return Plan{Slot: slot, To: to, Ops: p.ops}, nil
}

func (o *Op) phase() int {
	switch {
	case o.Early && o.Verb == Remove:
		return 1
	case o.Early:
		return 2
	}
	return 2 + int(o.Verb)
}

type planner struct {
	live  scan.Index
	aside func(string) string
	ops   []Op
	clear string         // a directory that gives way to something else, with a slash
	names map[string]int // of staged content, how many files have it
}

func (p *planner) planChange(c tree.Change) error {
	early := p.clear != "" && strings.HasPrefix(c.Path, p.clear)
	from, to := c.From, c.To
	switch {
	case from == nil && to.Type == tree.Dir:
		p.addOp(Op{Verb: MakeDir, Path: c.Path, Entry: *to})
	case from == nil:
		p.planPlace(c)
	case to == nil && from.Type == tree.Dir:
		p.addOp(Op{Verb: RemoveDir, Path: c.Path, Old: *from, Early: early})
	case to == nil:
		p.addOp(p.over(Op{Verb: Remove, Path: c.Path, Old: *from, Early: early}))
	case from.Type == tree.Dir && to.Type != tree.Dir:
		p.clear = c.Path + "/"
		p.addOp(Op{Verb: RemoveDir, Path: c.Path, Old: *from, Early: true})
		p.planPlace(tree.Change{Path: c.Path, To: to})
	case from.Type != tree.Dir && to.Type == tree.Dir:
		p.addOp(p.over(Op{Verb: Remove, Path: c.Path, Old: *from, Early: true}))
		p.addOp(Op{Verb: MakeDir, Path: c.Path, Entry: *to})
	case c.What() == "mode":
		p.addOp(p.over(Op{Verb: SetMode, Path: c.Path, Entry: *to, Old: *from}))
	default:
		p.planPlace(c)
	}
	return nil
}

func (p *planner) addOp(op Op) {
	if op.Aside != "" || op.Early {
		op.AsideID = rand.Text()
	}
	p.ops = append(p.ops, op)
}

// over notes what is there now.
func (p *planner) over(op Op) Op {
	if item := p.live[op.Path]; item != nil {
		st := item.Stat
		op.Was, op.Known = &st, true
	}
	op.Aside = p.aside(op.Path)
	return op
}

func (p *planner) planPlace(c tree.Change) {
	op := Op{Verb: Place, Path: c.Path, Entry: *c.To, Known: true}
	if c.From != nil {
		op.Old, op.Known = *c.From, false
		op = p.over(op)
	}
	name := op.Entry.Identity().String()
	op.Stage = name + "." + strconv.Itoa(p.names[name])
	p.names[name]++
	p.addOp(op)
}
