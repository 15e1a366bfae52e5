package roots

import (
	"context"
	"errors"
	"fmt"

	"saltclusterd/fsync/apply"
	"saltclusterd/fsync/content"
	"saltclusterd/fsync/tree"
)

// errHeadMoved says that a newer revision makes what is being done pointless.
var errHeadMoved = errors.New("a newer revision has come")

// catchUp completes a switch under way, looks at the disk, and puts the head on it.
func (s *Store) catchUp(ctx context.Context) error {
	if err := s.endSwitch(); err != nil {
		return err
	}
	if err := s.finishSwitches(ctx); err != nil {
		return err
	}
	head, ok := s.cfg.Log.Head()
	if s.adopt() { // after the look at the head: what is in force by then is seen
		head, ok = s.cfg.Log.Head()
	}
	if s.dirty = s.dirty || s.reordered(ctx); s.dirty || !ok || s.lastScan.IsZero() || head.Number != s.base.Number &&
		!s.looksTheSame() {
		if err := s.scanAll(ctx); err != nil {
			return err
		}
	}
	if !ok {
		return nil
	}
	s.metrics.head.Set(float64(head.Number))
	root, err := s.rootOf(ctx, head)
	if err != nil {
		return err
	}
	if s.makeMissing(root) {
		if err := s.scanAll(ctx); err != nil {
			return err
		}
	}
	if head.Number == s.base.Number && !s.slotsBehind(root) && s.dropped() == nil {
		return nil
	}
	err = s.integrate(ctx, head, root)
	if errors.Is(err, tree.ErrNoObject) { // a database from which something is missing
		if err = s.fetchTree(ctx, head, true); err == nil {
			err = s.integrate(ctx, head, root)
		}
	}
	if errors.Is(err, content.ErrUnavailable) && s.adoptLost(head) {
		return errHeadMoved
	}
	if err == nil && s.dirty {
		if err = s.scanAll(ctx); err == nil && s.slotsBehind(root) { // a directory was replaced during the switch
			return errHeadMoved
		}
	}
	return err
}

// looksTheSame says whether a scan would see, to all we know, what the last one saw. What a switch is about to replace
// is looked at anyway.
func (s *Store) looksTheSame() bool {
	if !s.watching {
		return false
	}
	for _, st := range s.slots {
		if st.missing && s.identOf(st) == (dirIdent{}) {
			continue
		}
		if st.unavailable != "" || st.restless() || s.identOf(st) != st.ident {
			return false
		}
	}
	return true
}

// rootOf returns the slots of a revision, with all their objects in the database.
func (s *Store) rootOf(ctx context.Context, rev Revision) (tree.Root, error) {
	if err := s.fetchTree(ctx, rev, false); err != nil {
		return nil, fmt.Errorf("fetch the tree of revision %d: %w", rev.Number, err)
	}
	return tree.ReadRoot(s, rev.Root)
}

// slotsBehind says whether a slot that is available has another base than the rest: it was not available before.
func (s *Store) slotsBehind(root tree.Root) bool {
	for _, st := range s.slots {
		if theirs, ok := root[st.Name]; ok && st.unavailable == "" && s.base.Slots[st.Name] != theirs {
			return true
		}
	}
	return false
}

// integrate merges local edits with the head and makes the result live.
func (s *Store) integrate(ctx context.Context, head Revision, root tree.Root) error {
	if err := s.putLive(); err != nil { // what is equal was not fetched
		return err
	}
	next := s.base.clone()
	next.Number, next.Root, next.Lacks = head.Number, head.Root, false
	dropped := s.dropped()
	if dropped != nil {
		next.Restored = dropped.Number
	}
	var plans []apply.Plan
	for _, st := range s.slots {
		theirs, ok := root[st.Name]
		if st.unavailable != "" {
			continue
		}
		if !ok {
			delete(next.Slots, st.Name)
			continue
		}
		plan, err := s.planSlot(st, theirs, dropped, &next)
		if err != nil {
			return err
		}
		next.Slots[st.Name], next.Idents[st.Name] = theirs, st.ident
		if len(plan.Ops) > 0 {
			plans = append(plans, plan)
		}
	}
	if len(plans) == 0 {
		s.setBase(next)
		return s.noteLive()
	}
	return s.switchTo(ctx, head, journal{Base: next, Plans: plans})
}

// planSlot decides what a slot becomes.
func (s *Store) planSlot(st *slotState, theirs Hash, dropped *Revision, next *base) (apply.Plan, error) {
	base, known := s.base.Slots[st.Name]
	to, losses := theirs, map[string]string{}
	put := tree.Memory{}
	switch {
	case st.dir == theirs:
		return apply.Plan{}, nil
	case !known:
		err := tree.Diff(s, st.dir, theirs, func(c tree.Change) error {
			if c.From != nil && c.From.Type != tree.Dir && (c.To == nil || !c.From.Same(c.To)) {
				losses[c.Path] = "this node had it when it joined the cluster"
			}
			return nil
		})
		if err != nil {
			return apply.Plan{}, err
		}
	case dropped != nil && s.isDropped(st, dropped):
		if err := s.loseDropped(base, st.dir, dropped.Number, losses); err != nil {
			return apply.Plan{}, err
		}
	case st.dir != base:
		var err error
		if next.Number != s.base.Number {
			if base, err = s.mergeBase(put, st.Name, base, st.dir, theirs); err != nil {
				return apply.Plan{}, fmt.Errorf("merge %s: %w", st.Name, err)
			}
		}
		merged, lost, err := tree.Merge(s, put, base, st.dir, theirs)
		if err != nil {
			return apply.Plan{}, fmt.Errorf("merge %s: %w", st.Name, err)
		}
		for _, l := range lost {
			losses[l.Path] = "edited here and elsewhere"
		}
		to = merged
		next.Merged = next.Merged || merged != theirs
	}
	if err := s.db.putObjects(put); err != nil {
		return apply.Plan{}, err
	}
	return apply.Make(s, st.Name, st.dir, to, st.index, func(path string) string { return losses[path] })
}

// putLive stores the objects of what is live.
func (s *Store) putLive() error {
	s.mu.Lock()
	objects := []tree.Memory{s.live}
	for _, st := range s.slots {
		objects = append(objects, st.objects)
	}
	s.mu.Unlock()
	return s.db.putObjects(objects...)
}

// setBase notes what is on this disk. It is saved later, when no caller waits any more: with a base that is older than
// the disk, what came since only looks like edits that other nodes have made as well.
func (s *Store) setBase(b base) {
	s.mu.Lock()
	s.base = b
	s.mu.Unlock()
	s.baseUnsaved = true
	s.metrics.base.Set(float64(b.Number))
}

func (s *Store) saveBase() error {
	if err := s.endSwitch(); err != nil { // or else the base would be newer than the plan that is carried out again
		return err
	}
	if !s.baseUnsaved {
		return nil
	}
	return s.putBase()
}

// putBase writes down the base when all of it is on the disk, and what belongs to it.
func (s *Store) putBase(pairs ...pair) error {
	for _, st := range s.slots { // edits made here may not have been flushed to the disk yet
		was, is := s.onDisk[st.Name], s.base.Slots[st.Name]
		if was == is || st.unavailable != "" {
			continue
		}
		if err := apply.Edits(s, st.Dir, was, is); err != nil {
			return fmt.Errorf("install edits: %w", err)
		}
	}
	pairs = append(pairs, pair{bucketMeta, keyBase, s.base}, pair{bucketMeta, keyProposals, s.openProposals()},
		pair{bucketMeta, keyAway, s.away}, pair{bucketMeta, keySpells, s.spells()})
	if err := s.db.put(pairs...); err != nil {
		return fmt.Errorf("save base: %w", err)
	}
	s.baseUnsaved, s.onDisk = false, s.base.Slots
	return nil
}
