package spool

import "testing"

// FuzzSegmentName: a file in the directory of a journal that is not a segment of it is not taken for one.
func FuzzSegmentName(f *testing.F) {
	f.Add(segmentName(7, 1<<63))
	f.Add(segmentName(0, 1))
	f.Add("+0000000000000000001-000000000000000f" + segmentSuffix)
	f.Add("00000000000000000001-000000000000000F" + segmentSuffix)
	f.Fuzz(func(t *testing.T, name string) {
		s, ok := parseSegmentName(name)
		if ok && segmentName(s.first, s.salt) != name {
			t.Fatalf("%q is taken for the segment of %d", name, s.first)
		}
	})
}
