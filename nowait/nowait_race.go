//go:build race

package nowait

import "syscall"

// The race detector learns from the package syscall that what was done before a message was sent happened before what
// is done when it was received. Sockets of Go's net package do not wait here either.

// Recv reads what a socket holds; see the other one.
func Recv(fd int, b []byte) (int, error) {
	n, err := syscall.Read(fd, b)
	return max(n, 0), err
}

// Send writes as much of up to MaxSend bytes as a socket takes now; see the other one.
func Send(fd int, b []byte) (int, error) {
	n, err := syscall.Write(fd, b)
	return max(n, 0), err
}

// SendPart is Send for bytes that others follow at once; see the other one.
func SendPart(fd int, b []byte) (int, error) { return Send(fd, b) }
