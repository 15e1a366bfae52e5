package edge

import (
	"syscall"

	"golang.org/x/sys/unix"

	"saltclusterd/sidecar/zmtp"
)

// maxIOV is the most buffers one system call is given.
const maxIOV = 32

// writeNow writes as much of bufs as a non-blocking socket takes in one go.
// EAGAIN comes with the number of bytes taken before.
func writeNow(fd int, bufs [][]byte) (n int, err error) {
	for {
		if len(bufs) == 1 && len(bufs[0]) <= zmtp.MaxSend {
			n, err = zmtp.Send(fd, bufs[0])
		} else if len(bufs) == 1 {
			n, err = syscall.Write(fd, bufs[0])
		} else {
			n, err = unix.Writev(fd, bufs[:min(len(bufs), maxIOV)])
		}
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
