package roots

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"saltclusterd/fsync/apply"
)

// away is a switch of a slot whose directory is not there: its file system is not mounted, say.
type away struct {
	Plan      apply.Plan
	Base      Hash     // of the slot, afterwards
	Ident     dirIdent // of the directory
	Unflushed bool
	Whole     uint64 // the revision that was whole on this disk before
}

// supersede puts aside what a switch that waits for its directory has taken out of that and had no time to put aside:
// what is staged is removed by the next switch of the slot. It does so once: what that one stages may have the same
// names, and must not be taken for edits when it is begun again.
func (s *Store) supersede(slot SlotName, area *apply.Area) error {
	a, ok := s.away[slot]
	if !ok || area == nil {
		return nil
	}
	out, err := s.abandon(&a.Plan, area)
	if err != nil {
		return err
	}
	conflicts := map[string]Conflict{}
	pairs := s.noteOutcome(slot, out, s.base.Number, area, conflicts)
	former, err := area.OpenFormer(s.cfg.StateDir, slot, s.findSlot(slot).Dir)
	if err != nil {
		return fmt.Errorf("open the former area of %s: %w", slot, err)
	}
	if former != nil { // the directory is on another disk now
		defer former.Close()
		if out, err = s.abandon(&a.Plan, former); err != nil {
			return err
		}
		out.Displaced = nil // the list of those is about the area in use
		pairs = append(pairs, s.noteOutcome(slot, out, s.base.Number, former, conflicts)...)
	}
	rest := s.awayWithout(slot)
	if err := s.db.put(append(pairs, pair{bucketMeta, keyAway, rest})...); err != nil {
		return fmt.Errorf("note what was put aside: %w", err)
	}
	s.away = rest
	s.changeConflicts(conflicts, nil)
	return nil
}

// abandon takes care of what a plan that was cut off has taken out to an area.
func (s *Store) abandon(p *apply.Plan, area *apply.Area) (apply.Outcome, error) {
	sw := apply.Switcher{Area: area, UID: s.cfg.UID, GID: s.cfg.GID, Step: s.hooks.step}
	return sw.Abandon(p)
}

// finishSwitches carries out what is left of switches that were interrupted.
func (s *Store) finishSwitches(ctx context.Context) error {
	if s.pending != nil {
		if err := errors.Join(s.finishSwitch(ctx), s.endSwitch()); err != nil {
			return err
		}
	}
	for _, st := range s.slots {
		a, ok := s.away[st.Name]
		if !ok || s.identOf(st).Ino != a.Ident.Ino {
			continue
		}
		j := journal{Base: s.base.clone(), Plans: []apply.Plan{a.Plan}, Began: time.Now(), Unflushed: a.Unflushed,
			Whole: a.Whole}
		j.Base.Slots[st.Name], j.Base.Idents[st.Name] = a.Base, a.Ident // that it is the same one the next look says
		if err := s.db.put(pair{bucketMeta, keyJournal, j}, pair{bucketMeta, keyAway, s.awayWithout(st.Name)}); err != nil {
			return fmt.Errorf("resume a switch: %w", err)
		}
		s.away, s.pending = s.awayWithout(st.Name), &j
		if err := errors.Join(s.finishSwitch(ctx), s.endSwitch()); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) awayWithout(name SlotName) map[SlotName]away {
	rest := maps.Clone(s.away)
	delete(rest, name)
	return rest
}
