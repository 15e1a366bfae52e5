package rootsadmin

import (
	"testing"
	"time"

	"saltclusterd/fsync/roots"
)

func TestDescribeFirstOf(t *testing.T) {
	looked := time.Now()
	full := []roots.SlotStatus{{Files: 0}, {Files: 3}}
	closed := []roots.SlotStatus{{Files: 3, Unavailable: "no"}}
	gone := []roots.SlotStatus{{Files: 3, Unavailable: "no", Missing: true}}
	closed[0].Name = roots.SlotName{Kind: "file", Env: "base"}
	for name, c := range map[string]struct {
		st   roots.Status
		want string // what the joiner is told
	}{
		"a directory cannot be read": {
			roots.Status{Mode: roots.ModeAuto, LastScan: looked, Slots: closed}, "file:base:0: no",
		},
		"a directory is not there": {roots.Status{Mode: roots.ModeAuto, LastScan: looked, Slots: gone}, ""},
		"not scanned yet":          {roots.Status{Mode: roots.ModeAuto}, "they are being read"},
		"nothing is there":         {roots.Status{Mode: roots.ModeAuto, LastScan: looked, Slots: full[:1]}, ""},
		"not proposed yet":         {roots.Status{Mode: roots.ModeAuto, LastScan: looked, Slots: full}, "3 files have been read"},
		"a file never rests": {
			roots.Status{Mode: roots.ModeAuto, LastScan: looked, Slots: full, Problems: []string{"x.log changes"}},
			"3 files have been read; x.log changes",
		},
		"cannot be read":      {roots.Status{Mode: roots.ModeAuto, Problems: []string{"x"}}, "x"},
		"there is a revision": {roots.Status{Mode: roots.ModeAuto, LastScan: looked, Slots: full, Head: 1}, ""},
		"an operator's turn":  {roots.Status{Mode: roots.ModeManual, LastScan: looked, Slots: full}, ""},
	} {
		if got := describeFirstOf(c.st); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
