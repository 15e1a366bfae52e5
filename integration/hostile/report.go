package hostile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Invariants by name, in the order of the package's documentation.
var Invariants = []string{"tags", "names", "returns", "jobs", "files", "keys", "secrets", "processes", "memory",
	"minions"}

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant string
	Text      string
	Request   int // which request it comes from; -1: it is not known
}

// String is one line for people.
func (v Violation) String() string {
	if v.Request < 0 {
		return v.Invariant + ": " + v.Text
	}
	return fmt.Sprintf("%s: %s [request %d]", v.Invariant, v.Text, v.Request)
}

// Report is what came of a run.
type Report struct {
	Seed       uint64
	Requests   int
	Outcomes   map[string]int // by command and what came of it
	Violations []Violation
	Notes      []string
}

// maxViolations bounds what is kept of one invariant: after a few, more of the same say nothing.
const maxViolations = 20

// book is a report in the making.
type book struct {
	mu   sync.Mutex
	seed uint64
	skip map[string]bool
	r    Report
	n    map[string]int
}

func newBook(seed uint64, skip []string) *book {
	b := &book{seed: seed, skip: map[string]bool{}, n: map[string]int{}}
	b.r = Report{Seed: seed, Outcomes: map[string]int{}}
	for _, s := range skip {
		b.skip[s] = true
	}
	return b
}

// violated notes a violation; the request is the one whose mark is in the evidence.
func (b *book) violated(invariant, evidence, format string, args ...any) {
	n, ok := marked(b.seed, evidence)
	if !ok {
		n = -1
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n[invariant]++
	if b.skip[invariant] || b.n[invariant] > maxViolations {
		return
	}
	b.r.Violations = append(b.r.Violations, Violation{invariant, fmt.Sprintf(format, args...), n})
}

func (b *book) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.r.Notes = append(b.r.Notes, fmt.Sprintf(format, args...))
}

func (b *book) said(r *Request, a answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.r.Requests++
	b.r.Outcomes[r.Cmd+": "+a.outcome]++
}

// report is the finished one.
func (b *book) report() *Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range Invariants {
		if n := b.n[name]; b.skip[name] && n > 0 {
			b.r.Notes = append(b.r.Notes, fmt.Sprintf("%s: %d times, as told not judged", name, n))
		} else if n > maxViolations {
			b.r.Notes = append(b.r.Notes, fmt.Sprintf("%s: %d times in all", name, n))
		}
	}
	slices.SortStableFunc(b.r.Violations, func(x, y Violation) int {
		return cmp.Compare(slices.Index(Invariants, x.Invariant), slices.Index(Invariants, y.Invariant))
	})
	return &b.r
}

// Summary is how often what came of what.
func (r *Report) Summary() string {
	var s strings.Builder
	fmt.Fprintf(&s, "seed %d, %d requests\n", r.Seed, r.Requests)
	for _, k := range slices.Sorted(maps.Keys(r.Outcomes)) {
		fmt.Fprintf(&s, "  %6d  %q\n", r.Outcomes[k], k)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&s, "  %s\n", n)
	}
	return strings.TrimRight(s.String(), "\n")
}
