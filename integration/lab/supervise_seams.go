package lab

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// liar answers the system calls that a seam diverts.
type liar struct {
	fd    int    // the filter's notification descriptor
	seams []byte // mapped from the file
}

// notification and verdict are struct seccomp_notif and struct seccomp_notif_resp.
type notification struct {
	ID    uint64
	PID   uint32
	Flags uint32
	NR    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

type verdict struct {
	ID    uint64
	Val   int64
	Error int32
	Flags uint32
}

// newLiar puts the filter on the calling thread, which must be locked; what is started from it inherits the filter. The
// thread itself may keep running: Go reads the clock without a system call, and nothing here calls fsync.
func newLiar(kind SeamKind, file string) (*liar, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l := &liar{}
	if l.seams, err = unix.Mmap(int(f.Fd()), 0, seamsSize, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map %s: %w", file, err)
	}
	prog := seamFilter(kind)
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(prog)
	if errno != 0 {
		return nil, fmt.Errorf("set seccomp filter: %w", errno)
	}
	l.fd = int(fd)
	unix.CloseOnExec(l.fd)
	return l, nil
}

// seamFilter asks for a verdict about the calls of the given kinds, and lets all others pass.
func seamFilter(kind SeamKind) []unix.SockFilter {
	const nr, arg0 = 0, 16 // offsets in struct seccomp_data
	load := func(off uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
	}
	skipUnless := func(v uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: v, Jf: skip}
	}
	ret := func(v uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: v} }
	prog := []unix.SockFilter{load(nr)}
	if kind&SeamSync != 0 {
		for _, call := range []uint32{unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNCFS} {
			prog = append(prog, skipUnless(call, 1), ret(unix.SECCOMP_RET_USER_NOTIF))
		}
	}
	if kind&SeamClock != 0 {
		for _, call := range timeCalls {
			prog = append(prog, skipUnless(call, 1), ret(unix.SECCOMP_RET_USER_NOTIF))
		}
		prog = append(prog, skipUnless(unix.SYS_CLOCK_GETTIME, 5), load(arg0))
		for _, clock := range []uint32{unix.CLOCK_REALTIME, unix.CLOCK_REALTIME_COARSE} {
			prog = append(prog, skipUnless(clock, 1), ret(unix.SECCOMP_RET_USER_NOTIF))
		}
	}
	return append(prog, ret(unix.SECCOMP_RET_ALLOW))
}

// run answers calls until the listener fails.
func (l *liar) run() {
	for {
		var n notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
		switch errno {
		case 0:
		case unix.EINTR, unix.ENOENT: // the caller was killed before we saw it
			continue
		default:
			return
		}
		s := decodeSeams(l.seams)
		switch uint32(n.NR) {
		case unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNCFS:
			if s.Sync > 0 {
				time.AfterFunc(s.Sync, func() { l.send(s.sync(n)) })
				continue
			}
			l.send(s.sync(n))
		default:
			l.send(s.clock(n))
		}
	}
}

func (s Seams) sync(n notification) verdict {
	if s.SyncErr != 0 {
		return verdict{ID: n.ID, Error: -int32(s.SyncErr)}
	}
	return verdict{ID: n.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
}

func (s Seams) clock(n notification) verdict {
	if s.Clock == 0 {
		return verdict{ID: n.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	}
	now := time.Now().Add(s.Clock)
	at, low := n.Args[0], uint64(now.Nanosecond()/1000)
	if n.NR == unix.SYS_CLOCK_GETTIME {
		at, low = n.Args[1], uint64(now.Nanosecond())
	}
	val := int64(0)
	b := binary.NativeEndian.AppendUint64(nil, uint64(now.Unix()))
	if isTimeCall(n.NR) { // time(2) returns the seconds, too
		val = now.Unix()
	} else {
		b = binary.NativeEndian.AppendUint64(b, low)
	}
	if at == 0 {
		return verdict{ID: n.ID, Val: val}
	}
	local := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	remote := unix.RemoteIovec{Base: uintptr(at), Len: len(b)}
	if _, err := unix.ProcessVMWritev(int(n.PID), []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0); err != nil {
		return verdict{ID: n.ID, Error: -int32(unix.EFAULT)}
	}
	return verdict{ID: n.ID, Val: val}
}

func (l *liar) send(v verdict) {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&v)))
}
