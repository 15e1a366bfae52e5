package admin

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peer is who opened a connection, as the kernel saw it at connect time.
type peer struct {
	uid    uint32
	gid    uint32
	groups []uint32 // supplementary
	err    error    // why the kernel did not tell
}

type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*conn); ok {
		return context.WithValue(ctx, peerKey{}, c.peer)
	}
	return ctx
}

// isAllowed reports whether p may use the API: root, our own user, or a member
// of the configured group. The socket's mode says the same; this also holds
// when that mode has been loosened.
func (s *Server) isAllowed(p peer) bool {
	switch {
	case p.err != nil:
		return false
	case p.uid == 0 || p.uid == uint32(os.Geteuid()):
		return true
	default:
		return s.grouped && (p.gid == s.group || slices.Contains(p.groups, s.group))
	}
}

func peerOf(c *net.UnixConn) (p peer) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{err: err}
	}
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			p.err = fmt.Errorf("read peer credentials: %w", err)
			return
		}
		p.uid, p.gid = cred.Uid, cred.Gid
		p.groups = peerGroups(int(fd)) // nil on kernels before 4.13: then the primary group decides
	})
	if err != nil {
		p.err = err
	}
	return p
}

// peerGroups reads SO_PEERGROUPS, which x/sys has no wrapper for. NGROUPS_MAX
// is 65536; who is in more than 1024 groups is known by the first refusal and
// treated as in none.
func peerGroups(fd int) []uint32 {
	groups := make([]uint32, 1024)
	size := uint32(len(groups) * 4)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
		uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return nil
	}
	return groups[:size/4]
}

// lookupGroup takes a group's name or number.
func lookupGroup(name string) (uint32, error) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n), nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(g.Gid, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("group %s has the number %q", name, g.Gid)
	}
	return uint32(n), nil
}
