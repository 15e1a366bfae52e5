// Package wording writes counts and lists of names for sentences that operators read.
package wording

import (
	"fmt"
	"strings"
)

// Plural returns a number and its noun, "1 node" or "2 nodes".
func Plural[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Choose returns the text for one thing or the text for any other number of them.
func Choose[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Enumerate joins names by commas and "and".
func Enumerate(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
