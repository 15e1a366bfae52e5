package eventlog

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestNewest(t *testing.T) {
	l, began := New(), time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	if got := l.Newest("", 5); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
	const all = Size + 10
	for i := range all {
		l.Note(Event{At: began.Add(time.Duration(i) * time.Second), Minion: fmt.Sprint("web", i%3),
			Tag: fmt.Sprint("tag/", i), From: "m2", Python: i%2 == 0})
		if i == 4 {
			if got := l.Newest("", 100); len(got) != 5 || got[0].Tag != "tag/4" || got[4].Tag != "tag/0" {
				t.Errorf("of a few: %v", got)
			}
		}
	}
	got := l.Newest("", all)
	if len(got) != Size {
		t.Fatalf("%d are remembered", len(got))
	}
	for i, e := range got {
		n := all - 1 - i
		want := Event{began.Add(time.Duration(n) * time.Second), fmt.Sprint("web", n%3), fmt.Sprint("tag/", n), "m2",
			n%2 == 0}
		if e != want {
			t.Fatalf("%d: %v, not %v", i, e, want)
		}
	}
	for _, e := range l.Newest("web1", 7) {
		if e.Minion != "web1" {
			t.Errorf("of web1: %v", e)
		}
	}
	if n := len(l.Newest("web1", 7)); n != 7 {
		t.Errorf("%d of 7", n)
	}
}

func TestLongOnesAreCut(t *testing.T) {
	l := New()
	id, tag := strings.Repeat("i", 300), strings.Repeat("t", 300)
	l.Note(Event{Minion: id, Tag: tag, From: id})
	got := l.Newest(id, 1)
	if len(got) != 1 || got[0].Minion != id[:MaxID] || got[0].Tag != tag[:MaxTag] || got[0].From != id[:MaxID] {
		t.Errorf("%v", got)
	}
	var none *Log
	none.Note(Event{})
	if none.Newest("", 1) != nil {
		t.Error("a nil one remembers")
	}
}

func TestNote_NoAllocations(t *testing.T) {
	l, e := New(), Event{At: time.Now(), Minion: "web1", Tag: "salt/beacon/web1/load/", From: "m2"}
	for range Size {
		l.Note(e)
	}
	if n := testing.AllocsPerRun(100, func() { l.Note(e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
