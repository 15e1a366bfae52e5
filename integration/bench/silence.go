package main

import "time"

// silence is the time between two messages.
type silence struct{ from, until time.Time }

func (s silence) dur() time.Duration { return s.until.Sub(s.from) }

// longest is the longest of some silences.
func longest(all []silence) (d time.Duration) {
	for _, s := range all {
		d = max(d, s.dur())
	}
	return d
}

// across is the longest of those silences that touch a span of time.
func across(all []silence, from, until time.Time) (d time.Duration) {
	for _, s := range all {
		if s.from.Before(until) && s.until.After(from) {
			d = max(d, s.dur())
		}
	}
	return d
}

// silences are the longest of the probed subscriber, in ms.
type silences struct{ normal, pause, around series }
