package spool

import (
	"fmt"
	"os"
	"path/filepath"
)

// found is what scan saw in a segment.
type found struct {
	last  uint64 // number of the last good record; first-1 when there is none
	end   int64  // end of the last good record
	size  int64  // of the file
	holes []Damage
	// broken: at end stands what looks like a whole record but has a wrong checksum.
	broken bool
}

// scanSegment reads a whole segment and checks every record. A bad part with a good record after it is a hole; a bad
// part at the end is left to the caller, which knows what should follow.
func scanSegment(dir string, s *segment) (found, error) {
	b, err := os.ReadFile(filepath.Join(dir, s.name))
	if err != nil {
		return found{}, err
	}
	start := len(segmentMagic)
	r := found{last: s.first - 1, end: int64(min(start, len(b))), size: int64(len(b))}
	if len(b) >= start && string(b[:start]) != segmentMagic {
		if findFrame(b, s.salt, r.last) < 0 {
			if len(b) > start && newerSegment(b) { // with records of ours it would be a damaged byte
				return found{}, fmt.Errorf("%w (%s)", ErrNewer, s.name)
			}
			r.end = 0
			return r, nil
		}
		r.holes = append(r.holes, Damage{Segment: s.name, Bytes: int64(start)})
	}
	for at := start; at < len(b); {
		f, ok := parseFrame(b[at:], s.salt)
		if ok && f.seq > r.last {
			if len(f.body) > 0 && f.body[0] > recordVersion {
				return found{}, fmt.Errorf("%w (%s: record %d)", ErrNewer, s.name, f.seq)
			}
			r.noteGap(s, int64(at), f.seq)
			r.last = f.seq
			at += int(f.diskSize())
			r.end = int64(at)
			continue
		}
		skip := findFrame(b[at+1:], s.salt, r.last)
		if skip < 0 {
			n, looks := int64(0), false
			if len(b)-at >= frameSize {
				n, looks = frameLength(b[at:], s.salt)
			}
			r.broken = looks && int64(at)+n <= r.size
			break
		}
		next := at + 1 + skip
		after, _ := parseFrame(b[next:], s.salt)
		r.holes = append(r.holes, Damage{
			Segment: s.name, Offset: int64(at), Bytes: int64(next - at), Unconfirmed: after.group <= uint64(at),
		})
		at = next
	}
	return r, nil
}

// noteGap notes the records missing before number seq at offset at, with the hole they were in if there is one.
func (r *found) noteGap(s *segment, at int64, seq uint64) {
	lost := seq - r.last - 1
	if lost == 0 {
		return
	}
	n := len(r.holes)
	if n == 0 || r.holes[n-1].Offset+r.holes[n-1].Bytes != at {
		r.holes = append(r.holes, Damage{Segment: s.name, Offset: at})
		n++
	}
	r.holes[n-1].Lost = lost
}
