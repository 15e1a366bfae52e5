package nowait

import "syscall"

// Control calls do with the descriptor of what has one, and which stays open meanwhile.
func Control(c any, do func(fd int)) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { do(int(fd)) })
	}
}
