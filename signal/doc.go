// Package signal wakes a goroutine that waits for work.
//
// In: a channel that holds one value. Out: a value in it. It is a leaf; every package may import it.
package signal
