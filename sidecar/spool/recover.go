package spool

import (
	"errors"
	"os"
	"path/filepath"
)

// recoverDir takes the directory and finds out what is in it.
func (s *Spool) recoverDir() error {
	if err := os.MkdirAll(s.c.Dir, 0o700); err != nil {
		return err
	}
	if err := s.takeLock(); err != nil {
		return err
	}
	if err := s.checkVersion(); err != nil {
		return err
	}
	list, err := listSegments(s.c.Dir)
	if err != nil {
		return err
	}
	s.segmentLog, s.consumers = segmentLog{next: 1}, nil // an attempt to open that failed may have left something
	for i := range s.c.Consumers {
		k := &consumer{s: s, Consumer: s.c.Consumers[i]}
		if k.cursor, err = openCursor(s.c.Dir, k.Name, s.c.Disk); err != nil {
			return err
		}
		k.done, k.durable = k.cursor.done, k.cursor.durable
		k.unsaved = k.Sync != nil && k.done > k.durable
		s.consumers = append(s.consumers, k)
		s.next = max(s.next, k.done+1, k.durable+1) // numbers are never given twice
	}
	if err := s.readSegments(list); err != nil {
		return err
	}
	s.startConsumers()
	return nil
}

// startConsumers has consumers that are new, or optional, begin with the oldest record there is: what came before
// others have done with.
func (s *Spool) startConsumers() {
	oldest := s.next
	if len(s.segments) > 0 {
		oldest = s.segments[0].first
	}
	for _, k := range s.consumers {
		switch {
		case k.cursor.generation == 0:
			k.done, k.durable = oldest-1, oldest-1
		case k.Optional:
			k.done, k.durable = max(k.done, oldest-1), max(k.durable, oldest-1)
		}
	}
}

// readSegments checks all segments that are needed and removes the others.
func (s *Spool) readSegments(list []*segment) error {
	for len(list) > 1 && s.allDone(list[1].first-1) {
		if err := os.Remove(filepath.Join(s.c.Dir, list[0].name)); err != nil {
			return err
		}
		list = list[1:]
	}
	s.reportMissing(list)
	for i, g := range list {
		f, err := scanSegment(s.c.Dir, g)
		if err != nil {
			return err
		}
		s.reportDamage(g, f, list[i+1:])
		if g.size == 0 {
			if err := s.setAside(g, f); err != nil {
				return err
			}
			continue
		}
		s.addSegment(g, f.size)
		s.next = max(s.next, f.last+1)
		if i == len(list)-1 {
			if err := s.resumeSegment(g, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// allDone says whether every consumer that is not optional has done for good with all records up to seq.
func (s *Spool) allDone(seq uint64) bool {
	for _, k := range s.consumers {
		if k.durable < seq && !k.Optional {
			return false
		}
	}
	return len(s.consumers) > 0
}

// reportMissing reports that the journal begins after what a consumer needs next.
func (s *Spool) reportMissing(list []*segment) {
	if len(list) == 0 {
		return
	}
	var lost uint64
	for _, k := range s.consumers {
		if k.done > 0 && !k.Optional && list[0].first > k.done+1 {
			lost = max(lost, list[0].first-k.done-1)
		}
	}
	if lost > 0 {
		s.noteDamage(Damage{Segment: list[0].name, Lost: lost})
	}
}

// reportDamage reports a segment's damage; what follows tells whether records are missing at its end.
func (s *Spool) reportDamage(g *segment, f found, following []*segment) {
	if g.size, g.holes = f.end, f.holes; f.size < int64(len(segmentMagic)) {
		g.size = 0
	}
	for _, h := range f.holes {
		s.noteDamage(h)
	}
	rest := Damage{Segment: g.name, Offset: f.end, Bytes: f.size - f.end}
	switch {
	case len(following) > 0 && following[0].first > f.last+1:
		rest.Lost = following[0].first - f.last - 1
		s.noteDamage(rest)
	case len(following) == 0 && (f.broken || g.size == 0 && f.size >= int64(len(segmentMagic))):
		rest.Unconfirmed = true
		s.noteDamage(rest)
	case f.size > f.end:
		s.c.Logger.Info("unfinished end of the journal cut off", "path", g.name, "bytes", f.size-f.end)
	}
}

// setAside takes a segment without any record out of the journal.
func (s *Spool) setAside(g *segment, f found) error {
	path := filepath.Join(s.c.Dir, g.name)
	if f.size <= int64(len(segmentMagic)) {
		return os.Remove(path)
	}
	if err := os.Rename(path, path+".damaged"); err != nil {
		return err
	}
	return s.c.Disk.Names(s.c.Dir)
}

// resumeSegment makes the last segment ready for more: its unfinished end is cut off.
func (s *Spool) resumeSegment(g *segment, f found) error {
	path := filepath.Join(s.c.Dir, g.name)
	if f.broken {
		if err := s.keepRest(path, f.end); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if f.size != f.end {
		if err = file.Truncate(f.end); err == nil {
			err = file.Sync()
		}
		s.bytes -= f.size - f.end
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.active = file
	return nil
}

// keepRest saves what will be cut off although it may have been a record. It is on the disk before that is cut.
func (s *Spool) keepRest(path string, from int64) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path+".damaged", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(b[min(from, int64(len(b))):]); err == nil {
		err = s.c.Disk.Sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.c.Disk.Names(s.c.Dir)
}
