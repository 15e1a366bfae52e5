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
		return strings.HasSuffix(d.Where, "/.minions.p") && d.Bare == nothing && d.Ours == "[]"
	}},
}

func intended(d Difference) bool {
	for _, e := range Intended {
		if e.is(d) {
			return true
		}
	}
	return false
}
