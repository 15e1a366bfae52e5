package spool

import (
	"os"
	"path/filepath"
)

// idleSegment is the size from which a segment whose records are all done with is put aside, so that a quiet journal
// takes no room.
const idleSegment = 1 << 20

// removeDone removes the segments that every consumer which is not optional is done with for good.
func (s *Spool) removeDone() {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone { // a checkpoint that Close did not wait for: the files are another process's
		return
	}
	least := s.leastDone(func(k *consumer) uint64 { return k.durable })
	for len(s.segments) > 1 && s.segments[1].first <= least+1 {
		if !s.removeOldest() {
			return
		}
	}
	if len(s.segments) == 1 && least == s.next-1 && s.segments[0].size >= min(idleSegment, s.c.SegmentBytes) {
		s.closeActive()
		s.removeOldest()
	}
}

// removeOldest deletes the oldest segment. The directory is not synced: that the file comes back after a power loss is
// harmless.
func (s *Spool) removeOldest() bool {
	g := s.segments[0]
	if err := os.Remove(filepath.Join(s.c.Dir, g.name)); err != nil && !os.IsNotExist(err) {
		s.c.Logger.Warn("journal's segment not removed", "path", g.name, "err", err)
		return false
	}
	s.removeSegment(0)
	s.full = false
	return true
}
