//go:build !race

package nowait

import (
	"syscall"
	"unsafe"
)

// Recv reads what a socket holds, into a buffer of some length; EAGAIN: nothing. At the end it returns 0 and no error.
//
// It and Send never wait, whatever the descriptor is set to, and so need not tell Go's scheduler that they may. Where a
// program has nothing to do between one message and the next, telling it would cost more than the call: its watcher
// (sysmon) is woken, looks every 20 µs whether the call takes long, and goes back to sleep.
func Recv(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)),
		syscall.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Send writes as much of up to MaxSend bytes as a socket takes now; EAGAIN: nothing.
func Send(fd int, b []byte) (int, error) { return send(fd, b, 0) }

// SendPart is Send for bytes that others follow at once: the kernel waits for these to fill a packet.
func SendPart(fd int, b []byte) (int, error) { return send(fd, b, syscall.MSG_MORE) }

func send(fd int, b []byte, flags uintptr) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)),
		syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL|flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
