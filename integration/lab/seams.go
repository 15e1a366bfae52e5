package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Seams is what a process is told about the world beyond what is true. The kernel hands the system calls in question to
// the process's supervisor (seccomp user notification), so any program can be lied to, also one that is linked
// statically and has no hooks for tests. Times of files stay the kernel's.
type Seams struct {
	Clock   time.Duration // added to the time of day (CLOCK_REALTIME); the monotonic clock stays
	Sync    time.Duration // how long each fsync, fdatasync and syncfs takes in addition
	SyncErr syscall.Errno // what each of them fails with
}

// SeamKind says which system calls of a process can be lied about. Reading the clock becomes some 20 µs slower.
type SeamKind int

// Kinds of seams, to be joined with |.
const (
	SeamSync SeamKind = 1 << iota
	SeamClock
)

// ErrNoSeams is returned by SetSeams for a process that was not given any.
var ErrNoSeams = errors.New("the process has no such seam")

// seamsSize is the size of the file by which a program tells a supervisor: three numbers, nanoseconds and an errno.
const seamsSize = 24

func (s Seams) encode() []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(s.Clock))
	b = binary.NativeEndian.AppendUint64(b, uint64(s.Sync))
	return binary.NativeEndian.AppendUint64(b, uint64(s.SyncErr))
}

func decodeSeams(b []byte) Seams {
	n := func(i int) uint64 { return binary.NativeEndian.Uint64(b[i:]) }
	return Seams{Clock: time.Duration(n(0)), Sync: time.Duration(n(8)), SyncErr: syscall.Errno(n(16))}
}

// GiveSeams makes the process's next start one that can be lied to.
func (p *Process) GiveSeams(kind SeamKind) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seams, p.seamsFile = kind, filepath.Join(p.host.lab.dir, "out", p.host.Name+"-"+p.Name+".seams")
	return os.WriteFile(p.seamsFile, Seams{}.encode(), 0o600)
}

// SetSeams tells the process something from now on, over restarts, until it is told otherwise.
func (p *Process) SetSeams(s Seams) error {
	p.mu.Lock()
	kind, path := p.seams, p.seamsFile
	p.mu.Unlock()
	if s.Clock != 0 && kind&SeamClock == 0 || (s.Sync != 0 || s.SyncErr != 0) && kind&SeamSync == 0 {
		return fmt.Errorf("set seams of %s: %w", p, ErrNoSeams)
	}
	if kind == 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("set seams of %s: %w", p, err)
	}
	_, err = f.WriteAt(s.encode(), 0) // in place: the supervisor has it mapped
	return errors.Join(err, f.Close())
}
