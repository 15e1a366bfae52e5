package roots

import (
	"fmt"
	"maps"
	"time"

	"saltclusterd/fsync/apply"
)

// ending is what is left to do of a switch when all of it is in its place: to bring it to the disk, and then to forget
// its plan and to write down the base. A base that is newer than the disk would make what a power failure has brought
// back look like edits.
type ending struct {
	all   bool // content, too
	flush []*apply.Flush
	pairs []pair
}

func (e *ending) close() {
	for _, f := range e.flush {
		f.Close()
	}
}

// switchedTo makes what a switch has done known, and its end permanent.
func (s *Store) switchedTo(j *journal, areas map[SlotName]*apply.Area, done []apply.Outcome, took time.Duration) error {
	sum := &Switch{Revision: j.Base.Number, Took: took, At: time.Now()}
	e := &ending{all: j.Unflushed, pairs: []pair{{bucketMeta, keyJournal, nil}}}
	conflicts := map[string]Conflict{}
	var gone []string
	j.Base = j.Base.clone()
	for i, o := range done {
		slot := j.Plans[i].Slot
		if was, ok := j.Base.Idents[slot]; ok && s.identOf(s.findSlot(slot)).Ino != was.Ino { // replaced meanwhile
			s.keepSlotBase(&j.Base, slot)
		}
		sum.Installed += o.Installed
		sum.Removed += o.Removed
		sum.Kept += len(o.Kept)
		sum.Aside += len(o.Aside)
		e.pairs = append(e.pairs, s.noteOutcome(slot, o, j.Base.Number, areas[slot], conflicts)...)
		restored := apply.Restored(areas[slot], &j.Plans[i])
		for _, id := range restored {
			e.pairs = append(e.pairs, pair{bucketConflicts, []byte(id), nil})
		}
		gone = append(gone, restored...)
		s.reindex(&j.Plans[i], areas[slot])
		e.flush = append(e.flush, o.Flush)
	}
	s.mu.Lock()
	s.switched, s.located = sum, nil
	s.mu.Unlock()
	s.changeConflicts(conflicts, gone)
	s.setBase(j.Base)
	s.ending = e
	s.log.Info("roots switched", "revision", sum.Revision, "installed", sum.Installed, "removed", sum.Removed,
		"kept", sum.Kept, "aside", sum.Aside, "dur", took)
	return nil
}

// endSwitch makes the end of a switch permanent, if one is to be ended; the loop calls it when no caller waits.
// After an error, or when it is interrupted, the switch is repeated: most of it turns out to be done.
func (s *Store) endSwitch() error {
	e := s.ending
	if e == nil {
		return nil
	}
	s.ending = nil
	defer e.close()
	began := time.Now()
	for _, f := range e.flush {
		if err := f.Run(e.all); err != nil {
			return fmt.Errorf("end a switch: %w", err)
		}
	}
	if err := s.putBase(e.pairs...); err != nil {
		return fmt.Errorf("end a switch: %w", err)
	}
	if err := removeNote(s.cfg.StateDir); err != nil {
		return fmt.Errorf("end a switch: %w", err)
	}
	s.pending = nil
	s.log.Debug("roots are on the disk", "revision", s.base.Number, "dur", time.Since(began))
	return nil
}

// noteOutcome notes what a switch of a slot has put aside and displaced, and returns what is to be written of it.
func (s *Store) noteOutcome(slot SlotName, o apply.Outcome, revision uint64, area *apply.Area,
	conflicts map[string]Conflict) (pairs []pair) {
	for _, a := range o.Aside {
		c := s.newConflict(slot, a, revision, area)
		conflicts[c.ID] = c
		pairs = append(pairs, pair{bucketConflicts, []byte(c.ID), c})
	}
	if kept := s.keepDisplaced(slot, o.Displaced, area); kept != nil {
		pairs = append(pairs, pair{bucketKept, []byte(slot.String()), kept})
	}
	return pairs
}

// changeConflicts adds conflicts to those that are known, and removes others.
func (s *Store) changeConflicts(add map[string]Conflict, gone []string) {
	s.mu.Lock()
	maps.Copy(s.conflict, add)
	for _, id := range gone {
		delete(s.conflict, id)
	}
	n := len(s.conflict)
	s.mu.Unlock()
	s.metrics.conflicts.Set(float64(n))
}

// reindex notes what the disk says of files that a switch has placed, so that the next scan need not read them.
func (s *Store) reindex(p *apply.Plan, area *apply.Area) {
	st := s.findSlot(p.Slot)
	placed := apply.Placed(area, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	index := st.index.Clone()
	for path, item := range placed {
		index[path] = item
	}
	st.index, st.unsaved = index, true
}

func (s *Store) newConflict(slot SlotName, a apply.Aside, revision uint64, area *apply.Area) Conflict {
	return Conflict{
		ID: a.ID, Slot: slot, Path: a.Path, Reason: a.Reason, Revision: revision, Node: s.cfg.Self, Time: time.Now(),
		Kept: area.Path + "/aside/" + a.ID, Type: a.Type.String(), Size: a.Size,
	}
}
