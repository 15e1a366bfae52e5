// Package require holds the conditions without which a test cannot go any further.
//
// In: the test and a value. Out: nothing, or the end of the test, reported at the line of the caller.
package require
