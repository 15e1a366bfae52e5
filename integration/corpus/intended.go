package corpus

import "strings"

// Exception is a difference that is meant to be. docs/differential.md says why.
type Exception struct {
	What string // the heading there
	is   func(d Difference) bool
}

// Intended lists what is meant to differ.
var Intended = []Exception{
	{"The empty list of minions", func(d Difference) bool {
		return strings.HasPrefix(d.Where, inFile+"jobs/") && strings.HasSuffix(d.Where, "/.minions.p") && d.Bare == nothing && d.Ours == "[]"
	}},
}

// meant says what of Intended a difference is; empty: none.
func meant(d Difference) string {
	for _, e := range Intended {
		if e.is(d) {
			return e.What
		}
	}
	return ""
}
