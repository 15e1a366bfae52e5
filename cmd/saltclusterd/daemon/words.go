package daemon

import (
	"fmt"
	"strings"
)

// plural is n things, in the words of who reads it.
func plural[N int | uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// are is the verb of n things.
func are(n int) string { return oneOf(n, "is", "are") }

// oneOf is the word for one thing, or for many.
func oneOf[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// enumerate names things in a sentence.
func enumerate(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
