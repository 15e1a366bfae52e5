package history_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"saltclusterd/integration/history"
)

// With violations, Print shows only the entries that belong to them.
func TestPrint_Violation(t *testing.T) {
	h := sound()
	h.Publications = append(h.Publications, history.Publication{Number: 8, Node: "m2", Start: at(11), End: at(11),
		Jid: "j8"})
	h.Cache = nil
	found := history.Check(h, history.DefaultOptions())
	var all, part bytes.Buffer
	h.Print(&all)
	h.Print(&part, found...)
	for text, want := range map[string][2]bool{
		"PUB   7 by m1": {true, true}, "RET   7 from a": {true, true}, "PUB   8 by m2": {true, false},
		"SUB   a to m2": {true, true},
		"leader m1":     {true, true},
	} {
		if got := [2]bool{strings.Contains(all.String(), text), strings.Contains(part.String(), text)}; got != want {
			t.Errorf("%q is printed %v, want %v\n%s", text, got, want, part.String())
		}
	}
}

func TestRecorderTakesFromMany(t *testing.T) {
	r := history.NewRecorder(1, "m1")
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			end := r.Fault(history.Fault{Kind: "x"})
			r.Run(history.Run{Number: i})
			r.Note("number %d", i)
			end()
		})
	}
	wg.Wait()
	h := r.History()
	if len(h.Runs) != 50 || len(h.Notes) != 50 || len(h.Faults) != 50 {
		t.Fatalf("%s", h.Summary())
	}
	if found := history.Check(h, history.DefaultOptions()); len(found) == 0 { // all runs have the same jid and minion
		t.Error("nothing found")
	}
	for _, f := range h.Faults {
		if f.End.IsZero() {
			t.Error("a fault has no end")
		}
	}
}
