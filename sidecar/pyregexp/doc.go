// Package pyregexp compiles regular expressions of Salt's options for Go.
//
// In: an expression for Python's re. Out: a Go expression that matches the same in texts without line feeds, or an
// error if the two might differ in any way. Supported are literals, anchors, sets, groups, alternatives and
// repetitions.
package pyregexp
