package spool

import (
	"os"
	"path/filepath"
)

// idleSegment is the size from which a segment whose records are all done with is put aside, so that a quiet journal
// takes no room.
const idleSegment = 1 << 20

// removeDone removes the segments that every consumer which is not optional is done with for good. While the
// disk does not answer, only the writer waits for it.
func (s *Spool) removeDone() {
	s.disk.Lock()
	defer s.disk.Unlock()
	for {
		g, last := s.takeDone()
		if g == nil {
			return
		}
		if last {
			s.closeActive()
		}
		err := s.removeFile(g)
		s.mu.Lock()
		if err != nil {
			s.putBack(g)
		} else {
			s.full = false
		}
		s.mu.Unlock()
		if err != nil {
			s.c.Logger.Warn("journal's segment not removed", "path", g.name, "err", err)
			return
		}
	}
}

// takeDone takes the oldest segment out of the list if it is not needed any more; nil: it is. last: no other is left.
func (s *Spool) takeDone() (g *segment, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || len(s.segments) == 0 { // gone: a checkpoint that Close did not wait for; the files are another process's
		return nil, false
	}
	g, last = s.segments[0], len(s.segments) == 1
	least := s.leastDone(func(k *consumer) uint64 { return k.durable })
	if last && (least != s.next-1 || g.size < min(idleSegment, s.c.SegmentBytes)) ||
		!last && s.segments[1].first > least+1 {
		return nil, false
	}
	s.removeSegment(0)
	return g, last
}

// removeFile deletes the file of a segment that is not in the list any more. The directory is not synced: that the file
// comes back after a power loss is harmless.
func (s *Spool) removeFile(g *segment) error {
	err := s.c.Disk.Remove(filepath.Join(s.c.Dir, g.name))
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
