// Package pyregexp compiles regular expressions of Salt's options for Go.
//
// In: an expression for Python's re. Out: one of Go's that finds the same in texts without line feeds, or an error for
// everything that the two might read differently; what is left are literals, anchors, sets, groups, alternatives and
// repetitions.
package pyregexp
