package roots

import (
	"fmt"
	"slices"
	"time"

	"saltclusterd/fsync/tree"
)

// Status returns the present state.
func (s *Store) Status() Status {
	st := Status{Mode: s.cfg.Mode}
	if s.run == nil {
		st.CaughtUp = s.cfg.Mode == ModeOff
		return st
	}
	if head, ok := s.cfg.Log.Head(); ok {
		st.Head, st.HeadRoot = head.Number, head.Root
	}
	for _, r := range s.cfg.Log.Revisions() {
		if r.State == StateHeld {
			st.Held = append(st.Held, r.Number)
		}
	}
	st.CaughtUp = s.CaughtUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Base, st.BaseRoot, st.Live = s.base.whole(), s.base.Root, s.liveRoot
	st.Edited = s.liveRoot != s.base.Root && !s.lastScan.IsZero()
	st.Progress, st.Conflicts, st.Watching, st.LastSwitch = s.progress, len(s.conflict), s.watching, s.switched
	st.LastScan, st.LastScanTook = s.lastScan, s.scanTook
	if s.problem != "" {
		st.Problems = append(st.Problems, s.problem)
	}
	for _, slot := range s.slots {
		lacking := slot.unavailable != "" && s.hasContent(slot.Name)
		st.Slots = append(st.Slots, SlotStatus{
			Name: slot.Name, Dir: slot.Dir, Unavailable: slot.unavailable, Missing: slot.missing, Replaced: slot.replaced,
			Lacking: lacking, Files: slot.files, Bytes: slot.bytes,
		})
		// A directory that is configured and was never made is not a problem while the others have nothing in it.
		if _, had := s.base.Idents[slot.Name]; slot.unavailable != "" && (lacking || had || !slot.missing) {
			st.Problems = append(st.Problems, fmt.Sprintf("%s: %s", slot.Name, slot.unavailable))
		}
		if slot.changing != "" && slot.restless() && time.Since(slot.restlessAt) >= min(changingSaid, s.cfg.Timing.Settle) {
			text := "edits of this node wait for it"
			if !s.unsettled() {
				text = "the cluster's version remains"
			}
			st.Problems = append(st.Problems, fmt.Sprintf("%s: %q changes while it is read; %s", slot.Name, slot.changing,
				text))
		}
		for _, p := range slot.problems {
			st.Problems = append(st.Problems, fmt.Sprintf("%s: %s", slot.Name, p))
		}
	}
	return st
}

// changingSaid is how long a file changes before that is reported: writing a file takes a while.
const changingSaid = 10 * time.Second

// hasContent says whether there is something in a slot as the cluster has it. s.mu is held.
func (s *Store) hasContent(name SlotName) bool {
	root, err := tree.ReadRoot(s.db, s.base.Root)
	if err != nil {
		return true
	}
	entries, err := tree.ReadDir(s.db, root[name])
	return err != nil || len(entries) > 0
}

// CaughtUp says whether the head is on this disk.
func (s *Store) CaughtUp() bool {
	if s.cfg.Mode == ModeOff {
		return true
	}
	if s.run == nil || !s.cfg.Log.Ready() {
		return false
	}
	head, ok := s.cfg.Log.Head()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.lastScan.IsZero() && !s.lacks() && (!ok || s.base.Number >= head.Number)
}

// lacks says whether files of the base are not on this disk, in slots that are there. s.mu is held.
func (s *Store) lacks() bool {
	return s.base.Lacks && slices.ContainsFunc(s.slots, func(st *slotState) bool { return st.unavailable == "" })
}
