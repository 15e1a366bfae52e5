// Package nowait reads and writes sockets without telling Go's scheduler.
//
// In: descriptors and connections of the package net. Out: bytes. No call of the kernel here waits, so the scheduler
// need not know of it. It is a leaf; every package may import it.
package nowait

// MaxSend is the most that Send is to be given at a time: the kernel may carry a packet to its receiver, on the same
// host, before it returns.
const MaxSend = 64 << 10
