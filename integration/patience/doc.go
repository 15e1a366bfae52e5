// Package patience is how tests wait for what comes soon.
//
// In: a condition and for how long to wait. Out: nothing, or an error with what was waited for and what was seen last.
// It promises that a wait that fails has had its time: time in which processes of this machine waited for a processor
// counts a third.
package patience
