package jobcache

import (
	"testing"
	"time"
)

// No two ids are the same: of one node, of two in the same microsecond, and of a node whose clock is set back.
func TestIDs(t *testing.T) {
	now := time.Date(2026, 11, 27, 10, 11, 12, 1000, time.UTC)
	seen := map[string]bool{}
	a, b := NewIDs(func() int { return 0 }), NewIDs(func() int { return places + 1 })
	for i := range 3 * maxMade {
		for _, j := range []*IDs{a, b} {
			at := now.Add(time.Duration(i%7-i%13) * time.Microsecond)
			jid := j.Next(at)
			if is, sure := isJID(jid); !is || !sure || seen[jid] || !j.Made(jid) {
				t.Fatalf("%s: an id %v, %v, made before %v, remembered %v", jid, is, sure, seen[jid], j.Made(jid))
			}
			seen[jid] = true
		}
	}
	early := a.Next(now.Add(time.Hour))
	for jid, want := range map[string]bool{early: true, early[:19] + "x": false, early + "_1": false, "": false, "req": false, jidOf(now.UnixMicro() + 1): false} {
		if a.Made(jid) != want {
			t.Errorf("%q made here: %v", jid, !want)
		}
	}
}

// An id is within a hundred microseconds of when it was asked for.
func TestIDsTellTheTime(t *testing.T) {
	now := time.Date(2026, 11, 27, 10, 11, 12, 345678000, time.UTC)
	for place := range places {
		jid := NewIDs(func() int { return place }).Next(now)
		at, err := time.Parse(jidLayout+".000000", jid[:14]+"."+jid[14:])
		if err != nil || at.Sub(now).Abs() > 100*time.Microsecond {
			t.Errorf("%s is of %s, %v", jid, at, err)
		}
	}
}
