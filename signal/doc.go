// Package signal wakes a goroutine that waits for work.
//
// In: a channel with room for one value, which Send fills without blocking. It is a leaf; every package may import it.
package signal
