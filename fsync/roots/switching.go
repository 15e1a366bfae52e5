package roots

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/fsync/apply"
	"saltclusterd/fsync/tree"
)

// switchTo stages what the plans need, and carries them out.
func (s *Store) switchTo(ctx context.Context, head Revision, j journal) error {
	if err := s.endSwitch(); err != nil { // its plan is not overwritten before
		return err
	}
	areas, err := s.openAreas(j.Plans)
	if err != nil {
		return err
	}
	defer closeAreas(areas)
	for i := range j.Plans { // a switch that waits for a directory that was replaced is superseded
		slot := j.Plans[i].Slot
		if err := s.supersede(slot, areas[slot]); err != nil {
			return err
		}
	}
	flushed, err := s.stage(ctx, head, j.Plans, areas)
	if err != nil {
		return err
	}
	j.Unflushed, j.here = !flushed, true
	if s.movedOn(head) && !s.insists() {
		return errHeadMoved
	}
	j.Began = time.Now()
	var plan encoded
	var encoding errgroup.Group // of a large plan that takes a while, and so does the look at the disk
	if !j.atOnce() {
		encoding.Go(func() (err error) {
			plan, err = encode(j)
			return err
		})
	}
	path := s.findStale(j.Plans, areas)
	if err := encoding.Wait(); err != nil {
		return fmt.Errorf("write the plan of a switch: %w", err)
	}
	if path != "" {
		s.dirty = true
		return fmt.Errorf("%w: %q was edited while its successor was fetched", errHeadMoved, path)
	}
	if j.atOnce() {
		err = writeNote(s.cfg.StateDir, &j)
	} else {
		err = s.db.put(pair{bucketMeta, keyJournal, plan})
	}
	if err != nil {
		return fmt.Errorf("write the plan of a switch: %w", err)
	}
	s.pending = &j
	for i := range j.Plans {
		apply.UntilTelling(ctx, &j.Plans[i])
	}
	return s.carryOut(ctx, &j, areas)
}

// atOnce says that a switch is a single exchange: whatever interrupts it, what is on the disk is the old tree or the
// new one. Its plan need not be on the disk before it, see note.go.
func (j *journal) atOnce() bool {
	if len(j.Plans) != 1 || len(j.Plans[0].Ops) != 1 || j.Unflushed {
		return false
	}
	op := &j.Plans[0].Ops[0]
	return op.Verb == apply.Place && op.Aside == ""
}

func (s *Store) movedOn(from Revision) bool {
	head, ok := s.cfg.Log.Head()
	return ok && head.Number != from.Number
}

// findStale returns a path for which it is worthwhile to scan again and to plan anew. What no scan can tell, a log that
// is written all the time or a socket, keeps the rest of a revision away no longer than edits wait for it: the switch
// leaves it as it is on this disk.
func (s *Store) findStale(plans []apply.Plan, areas map[SlotName]*apply.Area) string {
	mayPostpone := s.unsettled() || !s.insists()
	for i := range plans {
		edited, unseen := apply.Stale(areas[plans[i].Slot], &plans[i])
		if edited != "" {
			return edited
		}
		if unseen != "" && mayPostpone {
			return unseen
		}
	}
	return ""
}

func (s *Store) findSlot(name SlotName) *slotState {
	for _, st := range s.slots {
		if st.Name == name {
			return st
		}
	}
	return nil
}

func (s *Store) openAreas(plans []apply.Plan) (map[SlotName]*apply.Area, error) {
	areas := map[SlotName]*apply.Area{}
	for _, p := range plans {
		st := s.findSlot(p.Slot)
		if st == nil { // the configuration has changed since the plan was made
			continue
		}
		a, err := apply.OpenArea(s.cfg.StateDir, p.Slot, st.Dir)
		if err != nil {
			closeAreas(areas)
			return nil, fmt.Errorf("open %s: %w", p.Slot, err)
		}
		areas[p.Slot] = a
		s.mu.Lock()
		st.area = a.Path
		s.mu.Unlock()
	}
	return areas, nil
}

func closeAreas(areas map[SlotName]*apply.Area) {
	for _, a := range areas {
		a.Close()
	}
}

// finishSwitch carries out what is left of a switch that was interrupted. Of a slot whose directory is not the one that
// it was made for, it waits until that is back.
func (s *Store) finishSwitch(ctx context.Context) error {
	s.log.Info("an interrupted switch resumes", "revision", s.pending.Base.Number)
	s.pending.Base = s.pending.Base.clone() // which others may see already when this is not the first try
	var there []apply.Plan
	for _, p := range s.pending.Plans {
		var now dirIdent // none of a slot that is not configured any more
		if st := s.findSlot(p.Slot); st != nil {
			now = s.identOf(st)
		}
		was, ok := s.pending.Base.Idents[p.Slot]
		if now.Ino != 0 && (!ok || now.Ino == was.Ino) {
			there = append(there, p)
			continue
		}
		to := s.pending.Base.Slots[p.Slot]
		s.keepSlotBase(&s.pending.Base, p.Slot)
		if !ok { // of an earlier version
			continue
		}
		if s.away == nil {
			s.away = map[SlotName]away{}
		}
		s.away[p.Slot] = away{p, to, was, s.pending.Unflushed, s.base.whole()}
		s.log.Warn("a switch that was interrupted waits for its directory", "slot", p.Slot)
	}
	s.pending.Plans = there
	areas, err := s.openAreas(there)
	if err != nil {
		return err
	}
	defer closeAreas(areas)
	for i := range there {
		if err := apply.Renumber(areas[there[i].Slot], &there[i]); err != nil {
			return err
		}
	}
	if err := s.verifyContent(ctx, s.pending, areas); err != nil {
		return err
	}
	return s.carryOut(ctx, s.pending, areas)
}

// keepSlotBase has a slot keep the base from before a switch that did not reach its directory. A directory in its place
// is merged with that: what the switch was to bring does not count as deleted.
func (s *Store) keepSlotBase(next *base, slot SlotName) {
	delete(next.Slots, slot)
	if old, ok := s.base.Slots[slot]; ok {
		next.Slots[slot] = old
	}
}

// verifyContent has the base of a switch be without what did not reach the disk before the machine stopped: then it is
// fetched, as what this node has never had.
func (s *Store) verifyContent(ctx context.Context, j *journal, areas map[SlotName]*apply.Area) error {
	if !j.Unflushed || j.here {
		return nil
	}
	put := tree.Memory{}
	for i := range j.Plans {
		p := &j.Plans[i]
		lost, err := apply.Verify(ctx, areas[p.Slot], p)
		if err != nil {
			return err
		}
		if len(lost) == 0 {
			continue
		}
		s.log.Warn("files did not reach the disk before this machine stopped; they are fetched again", "path",
			s.findSlot(p.Slot).Dir, "files", len(lost))
		if j.Base.Slots[p.Slot], err = tree.Replace(s, put, j.Base.Slots[p.Slot], lost); err != nil {
			return err
		}
		if !j.Base.Lacks {
			j.Base.Lacks, j.Base.Whole = true, s.base.whole()
			if j.Whole > 0 {
				j.Base.Whole = min(j.Base.Whole, j.Whole)
			}
		}
	}
	return s.db.putObjects(put)
}

// carryOut is the short pass: no request for a file is served while it lasts.
func (s *Store) carryOut(ctx context.Context, j *journal, areas map[SlotName]*apply.Area) error {
	s.phase(PhaseSwitch)
	release, err := s.holdRequests(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	done := make([]apply.Outcome, len(j.Plans))
	var slots []SlotName
	for i := range j.Plans {
		p := &j.Plans[i]
		sw := apply.Switcher{Area: areas[p.Slot], UID: s.cfg.UID, GID: s.cfg.GID, Step: s.hooks.step}
		if done[i], err = sw.Run(p); err != nil {
			break
		}
		slots = append(slots, p.Slot)
	}
	if err == nil && s.cfg.AfterSwitch != nil {
		s.cfg.AfterSwitch(slots)
	}
	release()
	s.dirty = true
	took := time.Since(began)
	s.metrics.switches.Observe(took.Seconds())
	if err != nil {
		for _, o := range done {
			o.Flush.Close()
		}
		return err
	}
	return s.switchedTo(j, areas, done, took)
}

func (s *Store) holdRequests(ctx context.Context) (release func(), err error) {
	if s.cfg.Gate == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timing.Hold)
	defer cancel()
	release, err = s.cfg.Gate.Hold(ctx)
	if err != nil {
		return nil, fmt.Errorf("pause requests: %w", err)
	}
	return release, nil
}

var _ tree.Objects = (*Store)(nil)
