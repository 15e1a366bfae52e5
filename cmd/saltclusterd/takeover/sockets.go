package takeover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Sockets are the files that a process hands to the one that takes over from it: all listening sockets, and the lock
// of state_dir. Each has a name by which the new process finds it.
type Sockets struct {
	mu        sync.Mutex
	inherited map[string]int          // from the old process, not used yet
	open      map[string]syscall.Conn // of this process
	reserved  map[string]net.Listener // bound before they are needed
}

// LockName is the name of the lock of state_dir.
const LockName = "lock"

func unixName(path string) string { return "unix " + path }

// NewSockets returns Sockets without files.
func NewSockets() *Sockets {
	return &Sockets{inherited: map[string]int{}, open: map[string]syscall.Conn{}, reserved: map[string]net.Listener{}}
}

// Keep adds an open file to those that are handed over.
func (s *Sockets) Keep(name string, c syscall.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[name] = c
}

// KeepUnix adds the listener at a path to those that are handed over.
func (s *Sockets) KeepUnix(path string, l *net.UnixListener) { s.Keep(unixName(path), l) }

// Take returns an inherited file, which the caller has to close. It returns nil if there is none of that name.
func (s *Sockets) Take(name string) *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	fd, ok := s.inherited[name]
	if !ok {
		return nil
	}
	delete(s.inherited, name)
	return os.NewFile(uintptr(fd), name)
}

// Listen returns the listener for an address: the inherited one, a reserved one, or a new one.
func (s *Sockets) Listen(ctx context.Context, network, addr string) (net.Listener, error) {
	return s.listenAndKeep(ctx, &net.ListenConfig{}, network, addr)
}

// ListenBare is Listen for callers that set keep-alives themselves. An inherited listener keeps those that it has.
func (s *Sockets) ListenBare(ctx context.Context, network, addr string) (net.Listener, error) {
	return s.listenAndKeep(ctx, &net.ListenConfig{KeepAlive: -1}, network, addr)
}

func (s *Sockets) listenAndKeep(
	ctx context.Context, create *net.ListenConfig, network, addr string,
) (net.Listener, error) {
	name := network + " " + addr
	l, err := s.listenOn(ctx, create, name, network, addr)
	if err != nil {
		return nil, err
	}
	if c, ok := l.(syscall.Conn); ok {
		s.Keep(name, c)
	}
	return l, nil
}

func (s *Sockets) listenOn(
	ctx context.Context, create *net.ListenConfig, name, network, addr string,
) (net.Listener, error) {
	s.mu.Lock()
	l := s.reserved[name]
	delete(s.reserved, name)
	s.mu.Unlock()
	if l != nil {
		return l, nil
	}
	if f := s.Take(name); f != nil {
		defer f.Close()
		l, err := net.FileListener(f)
		if err != nil {
			return nil, fmt.Errorf("inherited listener %s: %w", name, err)
		}
		return l, nil
	}
	l, err := create.Listen(ctx, network, addr)
	return l, s.explainInUse(err, network, addr)
}

// explainInUse adds to the error for an address in use that the old process has an overlapping one.
func (s *Sockets) explainInUse(err error, network, addr string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.inherited)) {
		if of, other, _ := strings.Cut(name, " "); of == network && addrsOverlap(other, addr) {
			return fmt.Errorf("%w by the running saltclusterd, which listens on %s; to release it: systemctl restart saltclusterd",
				err, other)
		}
	}
	return err
}

// addrsOverlap reports whether two addresses, host:port, may exclude each other.
func addrsOverlap(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB {
		return false
	}
	ipA, errA := netip.ParseAddr(hostA)
	ipB, errB := netip.ParseAddr(hostB)
	apart := errA == nil && errB == nil && !ipA.IsUnspecified() && !ipB.IsUnspecified() && ipA.Unmap() != ipB.Unmap()
	return !apart
}

// Reserve binds addresses that Listen is to return later. Thus an address in use is found early.
func (s *Sockets) Reserve(ctx context.Context, network string, addrs ...string) error {
	for _, addr := range addrs {
		l, err := s.listenOn(ctx, &net.ListenConfig{}, network+" "+addr, network, addr)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.reserved[network+" "+addr] = l
		s.mu.Unlock()
	}
	return nil
}

// Release closes reserved listeners that Listen has not returned.
func (s *Sockets) Release(network string, addrs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, addr := range addrs {
		if l := s.reserved[network+" "+addr]; l != nil {
			_ = l.Close()
			delete(s.reserved, network+" "+addr)
		}
	}
}

// ListenPacket is Listen for packets.
func (s *Sockets) ListenPacket(ctx context.Context, network, addr string) (c net.PacketConn, err error) {
	name := network + " " + addr
	if f := s.Take(name); f != nil {
		defer f.Close()
		if c, err = net.FilePacketConn(f); err != nil {
			return nil, fmt.Errorf("inherited socket %s: %w", name, err)
		}
	} else if c, err = (&net.ListenConfig{}).ListenPacket(ctx, network, addr); err != nil {
		return nil, s.explainInUse(err, network, addr)
	}
	if sc, ok := c.(syscall.Conn); ok {
		s.Keep(name, sc)
	}
	return c, nil
}

// InheritedUnix returns the inherited listener at a path, nil if there is none. Closing it leaves the path in place
// until OwnPaths is called.
func (s *Sockets) InheritedUnix(path string) (*net.UnixListener, error) {
	f := s.Take(s.nameOf(path))
	if f == nil {
		return nil, nil
	}
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("inherited listener %s: %w", path, err)
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		_ = l.Close()
		return nil, fmt.Errorf("inherited listener %s is not a unix socket", path)
	}
	return u, nil
}

// nameOf returns the name of the inherited listener at a path. The old process may use another path to the same file,
// as /var/run is /run.
func (s *Sockets) nameOf(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.inherited {
		if other, ok := strings.CutPrefix(name, unixName("")); ok && sameFile(other, path) {
			return name
		}
	}
	return unixName(path)
}

// Inherit stores the files of the old process.
func (s *Sockets) Inherit(names []string, fds []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, name := range names {
		s.inherited[name] = fds[i]
	}
}

// DiscardInherited closes inherited files that were not used because the configuration has changed. It removes the
// paths of unix sockets among them; the error names those that it cannot remove.
func (s *Sockets) DiscardInherited() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for name, fd := range s.inherited {
		if path, ok := strings.CutPrefix(name, unixName("")); ok {
			errs = append(errs, removeSocket(path))
		}
		_ = unix.Close(fd)
		delete(s.inherited, name)
	}
	return errors.Join(errs...)
}

// removeSocket removes the file of a socket. A file of another type at that path stays.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() == fs.ModeSocket {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Export lists the open files by name. Their descriptors still belong to this process.
func (s *Sockets) Export() (names []string, fds []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.open {
		names = append(names, name)
	}
	slices.Sort(names)
	listed := names[:0]
	for _, name := range names {
		raw, err := s.open[name].SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
		}
		if err == nil { // else it was closed
			listed = append(listed, name)
		}
	}
	return listed, fds
}

// DisownPaths makes closing a unix socket leave its path in place, because the new process listens on it.
func (s *Sockets) DisownPaths() { s.setUnlinkOnClose(false) }

// OwnPaths makes closing a unix socket remove its path.
func (s *Sockets) OwnPaths() { s.setUnlinkOnClose(true) }

func (s *Sockets) setUnlinkOnClose(onClose bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		if u, ok := c.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(onClose)
		}
	}
}
