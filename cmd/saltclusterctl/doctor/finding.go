package doctor

import (
	"cmp"
	"slices"
)

// Level grades a Finding.
type Level string

// Levels. Skip is a look that was not possible.
const (
	OK   Level = "ok"
	Skip Level = "skip"
	Warn Level = "warn"
	Fail Level = "fail"
)

// Finding is the result of one look.
type Finding struct {
	Check string `json:"check"`           // ports, clock, files, ...
	Level Level  `json:"level"`           //
	Where string `json:"where,omitempty"` // a node, an address, a file
	What  string `json:"what"`            // a sentence
	Why   string `json:"why,omitempty"`   // what happens because of it
	Next  string `json:"next,omitempty"`  // what to type or to write
	// Command is the whole of what to type, where that is one command that takes nothing from anybody else; else nil.
	Command []string `json:"-"`
}

// Report is the answer of all looks.
type Report struct {
	Node     string    `json:"node,omitempty"`
	Findings []Finding `json:"findings"` // worst first within their order
	Failed   int       `json:"failed"`
	Warned   int       `json:"warned"`
}

// NewReport sorts and counts.
func NewReport(node string, found []Finding) Report {
	rank := map[Level]int{Fail: 0, Warn: 1, Skip: 2, OK: 3}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(rank[a.Level], rank[b.Level]) })
	r := Report{Node: node, Findings: append([]Finding{}, found...)}
	for _, f := range found {
		switch f.Level {
		case Fail:
			r.Failed++
		case Warn:
			r.Warned++
		}
	}
	return r
}

func ok(check, where, what string) Finding {
	return Finding{Check: check, Level: OK, Where: where, What: what}
}

func skip(check, where, what string) Finding {
	return Finding{Check: check, Level: Skip, Where: where, What: what}
}
