package history

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Tally counts publications × minions behind the load balancer that were owed while faults of one kind were in force,
// and from there to the next fault: minions are on their way back meanwhile.
type Tally struct {
	Kind     string // "none": before the first fault
	Faults   int
	Owed     int
	Missed   int
	Late     int // ran, more than lateFrom after the publication
	Returned int // and the return is in the publisher's job cache
}

// lateFrom is longer than a job needs on a slow machine when its minion is connected.
const lateFrom = 5 * time.Second

// TallyKinds counts by kinds of faults.
func TallyKinds(h *History, o Options) []Tally {
	j := newJudge(h, o)
	kinds := map[string]*Tally{}
	of := func(name string) *Tally {
		if kinds[name] == nil {
			kinds[name] = &Tally{Kind: name}
		}
		return kinds[name]
	}
	for _, f := range h.Faults {
		of(f.name()).Faults++
	}
	runs, cached := map[runKey]time.Time{}, map[[3]string]bool{}
	for _, r := range h.Runs {
		runs[runKey{r.Jid, r.Minion}] = r.At
	}
	for _, c := range h.Cache {
		cached[[3]string{c.Jid, c.Minion, c.Node}] = true
	}
	j.eachOwed(func(p Publication, id, node string, ran bool) {
		if node != "" {
			return
		}
		t := of(h.faultAt(p.Start))
		t.Owed++
		switch {
		case !ran:
			t.Missed++
			return
		case runs[runKey{p.Jid, id}].Sub(p.Start) > lateFrom:
			t.Late++
		}
		if cached[[3]string{p.Jid, id, p.Node}] {
			t.Returned++
		}
	})
	out := make([]Tally, 0, len(kinds))
	for _, name := range sorted(kinds) {
		out = append(out, *kinds[name])
	}
	return out
}

// name is the fault's kind without what it was done to.
func (f Fault) name() string {
	name, _, _ := strings.Cut(f.Kind, " of m")
	return name
}

// faultAt is the kind of the fault that began last before t.
func (h *History) faultAt(t time.Time) string {
	last := slices.IndexFunc(h.Faults, func(f Fault) bool { return f.Start.After(t) })
	if last < 0 {
		last = len(h.Faults)
	}
	if last == 0 {
		return "none"
	}
	return h.Faults[last-1].name()
}

// PrintTally writes a table.
func PrintTally(w io.Writer, tallies []Tally) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "kind\tfaults\towed\tmissed\tlate\treturned")
	for _, k := range tallies {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\n", k.Kind, k.Faults, k.Owed, k.Missed, k.Late, k.Returned)
	}
	return t.Flush()
}
