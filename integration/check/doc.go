// Package check compares what a test got with what it wants.
//
// In: the test, both values, and what they are about. Out: nothing, or an error of the test with all of them, reported
// at the line of the caller. The test continues, other than with package require.
package check
