// Package backoff waits: for a time, for when others are due as well, or longer and longer between attempts that fail.
//
// In: a context and durations. Out: whether the context is still active. It is a leaf; every package may import it.
package backoff
