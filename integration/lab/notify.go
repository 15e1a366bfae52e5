package lab

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// notifySocket is what systemd gives a service of Type=notify with NotifyAccess=main, as far as a change of the main
// process needs it: MAINPID from the main process only, and BARRIER.
type notifySocket struct {
	name string
	c    *net.UnixConn
}

func openNotifySocket() (*notifySocket, error) {
	name := fmt.Sprintf("@saltcluster-lab-%d", os.Getpid())
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("notify socket: %w", err)
	}
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
	}
	if err != nil {
		return nil, fmt.Errorf("notify socket: %w", err)
	}
	return &notifySocket{name, c}, nil
}

// follow keeps main up to date and tells status of each change, for as long as the supervisor lives.
func (s *notifySocket) follow(main *atomic.Int64, status io.Writer) {
	room, rights := make([]byte, 4096), make([]byte, 256)
	for {
		n, nr, _, _, err := s.c.ReadMsgUnix(room, rights)
		if err != nil {
			return
		}
		sender := s.sender(rights[:nr])
		for line := range strings.Lines(string(room[:n])) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			pid, err := strconv.Atoi(value)
			if name == "MAINPID" && err == nil && sender == main.Load() {
				main.Store(int64(pid))
				fmt.Fprintln(status, pid)
			}
		}
	}
}

// sender reads who sent a message, and closes the descriptors that came with it: that is what BARRIER waits for.
func (s *notifySocket) sender(rights []byte) (pid int64) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return 0
	}
	for i := range messages {
		if cred, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			pid = int64(cred.Pid)
		}
		fds, err := unix.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			if err == nil {
				_ = unix.Close(fd)
			}
		}
	}
	return pid
}
