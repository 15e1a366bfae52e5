//go:build race

package zmtp

import "syscall"

// MaxSend is the most that Send is to be given at a time.
const MaxSend = 64 << 10

// Recv is as without the race detector, which takes what was read for an event after what was written only where Read and Write do it: sockets
// must not block here.
func Recv(fd int, b []byte) (int, error) { return done(syscall.Read(fd, b)) }

// Send is as without the race detector.
func Send(fd int, b []byte) (int, error) { return done(syscall.Write(fd, b)) }

func done(n int, err error) (int, error) { return max(n, 0), err }
