package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// readRoom is how much is read at once.
const readRoom = 1 << 20

// reader reads records back from the segments, going forward. It belongs to one consumer.
type reader struct {
	f   *os.File
	seg *segment
	at  int64  // of the frame to read next
	seq uint64 // which comes after the last one read
	buf []byte
	off int64 // where buf stands in the file
}

func (r *reader) segmentName() string {
	if r.seg == nil {
		return ""
	}
	return r.seg.name
}

func (r *reader) close() {
	if r.f != nil {
		_ = r.f.Close()
	}
	*r = reader{}
}

// readBatch returns a batch from record from on, all before end. Empty: nothing that is left can be read.
func (r *reader) readBatch(s *Spool, from, end uint64) ([]Record, error) {
	if from < r.seq {
		r.close()
	}
	var batch []Record
	var bytes int64
	for from < end && len(batch) < s.c.BatchRecords && bytes < s.c.BatchBytes {
		f, ok, err := r.nextFrame(s, from, end)
		if err != nil || !ok {
			if len(batch) > 0 {
				err = nil
			}
			return batch, err
		}
		rec, err := parseRecord(f.body)
		if errors.Is(err, ErrNewer) {
			return batch, err
		}
		if err != nil {
			s.noteDamage(Damage{Segment: r.seg.name, Offset: r.at - f.diskSize(), Bytes: f.diskSize(), Lost: 1})
			from = f.seq + 1
			continue
		}
		rec.Seq = f.seq
		rec.Load = append([]byte(nil), rec.Load...)
		batch, bytes, from = append(batch, rec), bytes+f.diskSize(), f.seq+1
	}
	return batch, nil
}

// nextFrame returns the first good frame from number from on.
func (r *reader) nextFrame(s *Spool, from, end uint64) (frame, bool, error) {
	for {
		limit, next, err := r.findSegment(s, from)
		if errors.Is(err, fs.ErrNotExist) {
			s.forgetVanished(r.seg, from, end)
			r.seg = nil
			continue
		}
		if err != nil || r.f == nil {
			return frame{}, false, err
		}
		f, ok, err := r.parseFrame(limit)
		if err != nil {
			return frame{}, false, err
		}
		switch {
		case ok && f.seq >= from && f.seq < end && (next == 0 || f.seq < next):
			r.at, r.seq = r.at+f.diskSize(), f.seq+1
			return f, true, nil
		case ok && f.seq < from:
			r.at += f.diskSize()
		case r.at < limit && !ok:
			if err := r.skipDamage(s, limit, from, next); err != nil {
				return frame{}, false, err
			}
		case next == 0:
			return frame{}, false, nil
		default: // on to the next segment
			from = max(from, next)
			r.close()
		}
	}
}

// findSegment sees that the reader stands in the segment where from is, and returns the end of its good part and the
// first number of the segment after it (0: there is none).
func (r *reader) findSegment(s *Spool, from uint64) (limit int64, next uint64, err error) {
	s.mu.Lock()
	var g *segment
	for _, c := range s.segments {
		if c.first <= from || g == nil {
			g, next = c, 0
		} else {
			next = c.first
			break
		}
	}
	if g != nil {
		limit = g.size
	}
	s.mu.Unlock()
	if g == r.seg && r.f != nil || g == nil {
		return limit, next, nil
	}
	r.close()
	f, err := os.Open(filepath.Join(s.c.Dir, g.name))
	if err != nil {
		r.seg = g
		return 0, 0, fmt.Errorf("read journal: %w", err)
	}
	r.f, r.seg, r.at = f, g, int64(len(segmentMagic))
	return limit, next, nil
}

// parseFrame reads the frame at r.at; ok is false when there is none that is good before limit.
func (r *reader) parseFrame(limit int64) (frame, bool, error) {
	b, err := r.readBytes(frameSize, limit)
	if err != nil || len(b) < frameSize {
		return frame{}, false, err
	}
	n, ok := frameLength(b, r.seg.salt)
	if !ok || r.at+n > limit {
		return frame{}, false, nil
	}
	if b, err = r.readBytes(n, limit); err != nil {
		return frame{}, false, err
	}
	f, ok := parseFrame(b, r.seg.salt)
	return f, ok, nil
}

// readBytes returns n bytes at r.at, fewer at limit.
func (r *reader) readBytes(n, limit int64) ([]byte, error) {
	n = min(n, limit-r.at)
	if n <= 0 {
		return nil, nil
	}
	if r.at < r.off || r.at+n > r.off+int64(len(r.buf)) {
		want := min(max(n, readRoom), limit-r.at)
		if int64(cap(r.buf)) < want || cap(r.buf) > 4*readRoom && want <= readRoom {
			r.buf = make([]byte, want)
		}
		r.buf, r.off = r.buf[:want], r.at
		if _, err := r.f.ReadAt(r.buf, r.at); err != nil {
			r.buf = r.buf[:0]
			if errors.Is(err, io.EOF) { // shorter than it was: it has been cut
				return nil, nil
			}
			return nil, fmt.Errorf("read journal: %w", err)
		}
	}
	at := r.at - r.off
	return r.buf[at : at+n : at+n], nil
}

// skipDamage goes to the next good frame after a bad one; from is the record that should be there, next the first that
// is in the segment after this one. (Without one, the consumer counts what it did not get.) Damage that Open has not
// seen is reported.
func (r *reader) skipDamage(s *Spool, limit int64, from, next uint64) error {
	rest, err := io.ReadAll(io.NewSectionReader(r.f, r.at, limit-r.at))
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	d := Damage{Segment: r.seg.name, Offset: r.at, Bytes: limit - r.at}
	if next != 0 {
		d.Lost = next - min(from, next)
	}
	if len(rest) > 1 {
		if n := findFrame(rest[1:], r.seg.salt, from-1); n >= 0 {
			d.Bytes = int64(n) + 1
			f, _ := parseFrame(rest[1+n:], r.seg.salt)
			d.Lost = f.seq - from
		}
	}
	known := false
	s.mu.Lock()
	for _, h := range r.seg.holes {
		known = known || d.Offset <= h.Offset+h.Bytes && h.Offset <= d.Offset+d.Bytes
	}
	if !known {
		r.seg.holes = append(r.seg.holes, d)
	}
	s.mu.Unlock()
	if !known {
		s.noteDamage(d)
	}
	r.at += d.Bytes
	return nil
}

// forgetVanished reports a segment whose file is gone and forgets it, unless it was forgotten before because its
// consumers are done with it.
func (s *Spool) forgetVanished(g *segment, from, end uint64) {
	s.mu.Lock()
	i := slices.Index(s.segments, g)
	if i < 0 {
		s.mu.Unlock()
		return
	}
	after := end
	if i+1 < len(s.segments) {
		after = s.segments[i+1].first
	}
	s.removeSegment(i)
	s.mu.Unlock()
	s.noteDamage(Damage{Segment: g.name, Bytes: g.size, Lost: after - min(from, after)})
}
