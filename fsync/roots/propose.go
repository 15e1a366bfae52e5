package roots

import (
	"context"
	"fmt"

	"saltclusterd/fsync/tree"
)

// proposeEdits proposes what is live when it differs from the head, which is the base. It returns ErrNotCurrent when
// another revision was first.
func (s *Store) proposeEdits(ctx context.Context, opts SyncOptions) (SyncResult, error) {
	head, found := s.cfg.Log.Head()
	switch {
	case !s.cfg.Log.Ready():
		return SyncResult{}, fmt.Errorf("%w: this node does not have the roots of the cluster yet", ErrNoQuorum)
	case found && head.Number != s.base.Number:
		return SyncResult{}, errHeadMoved
	}
	e, err := s.edits(opts.Env, found)
	if err != nil {
		return SyncResult{}, err
	}
	res := SyncResult{Revision: head, Changes: e.changes, More: e.more}
	switch {
	case found && e.root == head.Root, !found && e.stats.Files == 0:
		return res, nil
	case opts.DryRun:
		res.Held = e.tooMuch && !opts.Force
		return res, nil
	}
	accepted := opts.Accept != "" && !e.tooMuch // nothing is too much any more
	if held := s.heldAs(e.root); held != nil && !opts.Force && !accepted {
		res.Revision, res.Held = *held, true
		return res, nil
	}
	if d := s.dropped(); d != nil && d.Root == e.root && !opts.Force { // a moment ago: it is to be undone first
		return res, errHeadMoved
	}
	p := Proposal{
		Parent: head.Number, Root: e.root, Kind: s.kind(found), Stats: e.stats, Note: opts.Note,
		Held: e.tooMuch && !opts.Force && found, Confirmed: opts.Force,
	}
	return s.propose(ctx, p, e, res)
}

func (s *Store) kind(found bool) Kind {
	switch {
	case !found:
		return KindFirst
	case s.base.Merged:
		return KindMerge
	}
	return KindEdit
}

func (s *Store) propose(ctx context.Context, p Proposal, e *edits, res SyncResult) (SyncResult, error) {
	s.phase(PhasePropose)
	if err := s.willPropose(p, e); err != nil {
		return res, err
	}
	rev, err := s.cfg.Log.Propose(ctx, p)
	if err != nil {
		s.metrics.proposals.WithLabelValues("refused").Inc()
		s.refused(err)
		return res, fmt.Errorf("propose a revision: %w", err)
	}
	s.metrics.proposals.WithLabelValues(string(rev.State)).Inc()
	res.Revision, res.Proposed = rev, true
	if rev.State != StateApplied {
		s.proposed[len(s.proposed)-1].Held, s.baseUnsaved = true, true
		res.Held = true
		s.log.Warn("revision held because it removes too much: confirm or drop it", "revision", rev.Number,
			"removed", p.Stats.Removed)
		return res, nil
	}
	s.noteSpells(e, p.Confirmed)
	s.log.Info("revision proposed", "revision", rev.Number, "root", p.Root.Short(), "changed", p.Stats.Changed,
		"removed", p.Stats.Removed)
	s.becomes(s.proposed[len(s.proposed)-1], rev.Number)
	return res, nil
}

// edits is how live differs from the base.
type edits struct {
	root    Hash
	objects tree.Memory
	slots   []*slotState // that are part of it
	stats   Stats
	changes []Change
	more    int
	tooMuch bool              // is removed from some slot
	before  map[SlotName]Hash // the slots that changed, as they were
	lost    map[SlotName]bool // those that have lost files
}

// edits compares live, of one environment or all, with the base; found says that there is a revision.
func (s *Store) edits(env string, found bool) (*edits, error) {
	root, err := tree.ReadRoot(s, s.base.Root)
	if err != nil {
		return nil, err
	}
	e := &edits{objects: tree.Memory{}, before: map[SlotName]Hash{}, lost: map[SlotName]bool{}}
	for _, st := range s.slots {
		if st.unavailable != "" || env != "" && st.Name.Env != env {
			continue
		}
		e.slots = append(e.slots, st)
		before, removed := root[st.Name], e.stats.Removed
		root[st.Name] = st.dir
		if before == st.dir {
			continue
		}
		e.before[st.Name] = before
		if err := e.compare(s, st.Name, before, st.dir); err != nil {
			return nil, err
		}
		if removed = e.stats.Removed - removed; removed > 0 {
			e.lost[st.Name] = true
			if st.Dir == s.accepted {
				continue
			}
			tooMuch, err := s.removesTooMuchOf(st, before)
			if err != nil {
				return nil, err
			}
			e.tooMuch = e.tooMuch || tooMuch
		}
	}
	if e.root, err = e.objects.PutRoot(root); err != nil || found && e.root == s.base.Root { // nothing to tell
		return e, err
	}
	return e, s.countAll(root, e)
}

// countAll tells how much a tree holds. What the last scan has counted is not read again.
func (s *Store) countAll(root tree.Root, e *edits) error {
	for name, dir := range root {
		if st := s.findSlot(name); st != nil && st.unavailable == "" && st.dir == dir {
			e.stats.Files, e.stats.Bytes = e.stats.Files+st.files, e.stats.Bytes+st.bytes
			continue
		}
		files, bytes, err := tree.Count(s, dir)
		if err != nil {
			return err
		}
		e.stats.Files, e.stats.Bytes = e.stats.Files+files, e.stats.Bytes+bytes
	}
	return nil
}

func (e *edits) compare(o tree.Objects, slot SlotName, from, to Hash) error {
	return tree.Diff(o, from, to, func(c tree.Change) error {
		switch {
		case isLost(c):
			e.stats.Removed++
		case c.To != nil:
			e.stats.Changed++
		}
		if len(e.changes) >= MaxChanges {
			e.more++
			return nil
		}
		e.changes = append(e.changes, newChange(slot, c))
		return nil
	})
}

func newChange(slot SlotName, c tree.Change) Change {
	out := Change{Slot: slot, Path: c.Path, What: c.What()}
	if c.From != nil {
		out.From, out.Size = c.From.Type.String(), c.From.Size()
	}
	if c.To != nil {
		out.To, out.Size = c.To.Type.String(), c.To.Size()
	}
	return out
}
