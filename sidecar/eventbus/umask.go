package eventbus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"saltclusterd/sidecar/localmaster"
)

// UsualUmask is that of a master that makes itself a daemon (salt/utils/process.py:daemonize), and of one that systemd
// starts without another UMask=.
const UsualUmask = 0o022

// ErrNoUmask: it cannot be seen now what umask the master has.
var ErrNoUmask = errors.New("eventbus: umask not known")

// Umask is what the running master takes off the modes of the files and directories it makes. The kernel tells: which
// process listens at the event bus, whose umask is that of all processes of a master, and what that is. ErrNoUmask:
// there is none, it has no such socket (ipc_mode: tcp), its processes are hidden from us (systemd's ProtectProc=,
// another container), or it is at a moment where it has set another one for a file of its own.
func Umask(ctx context.Context, c *localmaster.Config) (uint32, error) {
	e := busEndpoint(c, "master_event_pull.ipc", "tcp_master_pull_port")
	if e.network != "unix" {
		return 0, fmt.Errorf("%w: ipc_mode is %s", ErrNoUmask, c.IPCMode)
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := e.dialBus(ctx)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoUmask, err)
	}
	defer conn.Close()
	peer, err := listenerCred(conn)
	if err != nil {
		return 0, fmt.Errorf("%w: find the process that listens at %s: %w", ErrNoUmask, e.address, err)
	}
	if peer.Pid <= 0 {
		return 0, fmt.Errorf("%w: the listener at %s is not a process of this container", ErrNoUmask, e.address)
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(int(peer.Pid)) + "/status")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoUmask, err)
	}
	return umaskIn(string(status), peer.Uid)
}

// listenerCred is the process that made the socket a connection leads to listen.
func listenerCred(conn net.Conn) (peer *unix.Ucred, err error) {
	sock, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	raw, err := sock.SyscallConn()
	if err != nil {
		return nil, err
	}
	failed := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return peer, errors.Join(failed, err)
}

// umaskIn reads the status of a process that shall be of that user.
func umaskIn(status string, uid uint32) (uint32, error) {
	var mask uint32
	found, same := false, false
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		switch words := strings.Fields(value); {
		case name == "Umask" && len(words) == 1:
			v, err := strconv.ParseUint(words[0], 8, 12)
			if err != nil {
				return 0, fmt.Errorf("%w: %w", ErrNoUmask, err)
			}
			mask, found = uint32(v), true
		case name == "Uid" && len(words) == 4:
			same = words[1] == strconv.FormatUint(uint64(uid), 10) // the effective one
		}
	}
	switch {
	case !found:
		return 0, fmt.Errorf("%w: the kernel does not report it", ErrNoUmask)
	case !same:
		return 0, fmt.Errorf("%w: the process has ended", ErrNoUmask)
	case mask&0o700 != 0: // of set_umask (salt/utils/files.py) while it makes a socket or key; no master could run with it
		return 0, fmt.Errorf("%w: it is %03o for a moment", ErrNoUmask, mask)
	}
	return mask & 0o777, nil
}
