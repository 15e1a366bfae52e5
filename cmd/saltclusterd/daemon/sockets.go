package daemon

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

// sockets are the files which a process hands to the one that takes over from it: whatever listens, and the lock of
// state_dir. They have names by which the other process asks for them.
type sockets struct {
	mu        sync.Mutex
	inherited map[string]int          // of the process before, not asked for yet
	open      map[string]syscall.Conn // ours
	reserved  map[string]net.Listener // bound before they are needed
}

// lockName names the lock of state_dir.
const lockName = "lock"

func unixName(path string) string { return "unix " + path }

func newSockets() *sockets {
	return &sockets{inherited: map[string]int{}, open: map[string]syscall.Conn{}, reserved: map[string]net.Listener{}}
}

// keep notes an open file.
func (s *sockets) keep(name string, c syscall.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[name] = c
}

// take returns an inherited file, nil if there is none. It is the caller's.
func (s *sockets) take(name string) *os.File {
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
func (s *sockets) Listen(ctx context.Context, network, addr string) (net.Listener, error) {
	return s.listenAs(ctx, &net.ListenConfig{}, network, addr)
}

// ListenBare is Listen for who sees to keep-alives himself. Only a new one leaves them to him.
func (s *sockets) ListenBare(ctx context.Context, network, addr string) (net.Listener, error) {
	return s.listenAs(ctx, &net.ListenConfig{KeepAlive: -1}, network, addr)
}

func (s *sockets) listenAs(ctx context.Context, anew *net.ListenConfig, network, addr string) (net.Listener, error) {
	name := network + " " + addr
	l, err := s.listen(ctx, anew, name, network, addr)
	if err != nil {
		return nil, err
	}
	if c, ok := l.(syscall.Conn); ok {
		s.keep(name, c)
	}
	return l, nil
}

func (s *sockets) listen(ctx context.Context, anew *net.ListenConfig, name, network, addr string) (net.Listener, error) {
	s.mu.Lock()
	l := s.reserved[name]
	delete(s.reserved, name)
	s.mu.Unlock()
	if l != nil {
		return l, nil
	}
	if f := s.take(name); f != nil {
		defer f.Close()
		l, err := net.FileListener(f)
		if err != nil {
			return nil, fmt.Errorf("inherited listener %s: %w", name, err)
		}
		return l, nil
	}
	l, err := anew.Listen(ctx, network, addr)
	return l, s.whose(err, network, addr)
}

// whose adds to the error for a taken address that the process before this one has it: in a form of its own, or it would have been inherited.
func (s *sockets) whose(err error, network, addr string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.inherited)) {
		if of, other, _ := strings.Cut(name, " "); of == network && overlap(other, addr) {
			return fmt.Errorf("%w by the running saltclusterd, which has %s and gives it up only when it is restarted", err, other)
		}
	}
	return err
}

// overlap says whether two addresses, host:port, may exclude each other.
func overlap(a, b string) bool {
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

// Reserve binds addresses before it is too late to say that one is taken.
func (s *sockets) Reserve(ctx context.Context, network string, addrs ...string) error {
	for _, addr := range addrs {
		l, err := s.listen(ctx, &net.ListenConfig{}, network+" "+addr, network, addr)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.reserved[network+" "+addr] = l
		s.mu.Unlock()
	}
	return nil
}

// Release closes what was reserved and is not needed after all.
func (s *sockets) Release(network string, addrs ...string) {
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
func (s *sockets) ListenPacket(ctx context.Context, network, addr string) (c net.PacketConn, err error) {
	name := network + " " + addr
	if f := s.take(name); f != nil {
		defer f.Close()
		if c, err = net.FilePacketConn(f); err != nil {
			return nil, fmt.Errorf("inherited socket %s: %w", name, err)
		}
	} else if c, err = (&net.ListenConfig{}).ListenPacket(ctx, network, addr); err != nil {
		return nil, s.whose(err, network, addr)
	}
	if sc, ok := c.(syscall.Conn); ok {
		s.keep(name, sc)
	}
	return c, nil
}

// inheritedUnix returns the inherited listener at a path, nil if there is none. The path is the old process's until ours.
func (s *sockets) inheritedUnix(path string) (*net.UnixListener, error) {
	f := s.take(s.nameOf(path))
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
		return nil, fmt.Errorf("inherited listener %s is no unix socket", path)
	}
	return u, nil
}

// nameOf returns the name of what the process before listens on at a path, which it may know as another one: /var/run is /run.
func (s *sockets) nameOf(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.inherited {
		if other, ok := strings.CutPrefix(name, unixName("")); ok && sameFile(other, path) {
			return name
		}
	}
	return unixName(path)
}

// inherit takes the files of the process before.
func (s *sockets) inherit(names []string, fds []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, name := range names {
		s.inherited[name] = fds[i]
	}
}

// discard closes what nobody has asked for: the configuration has changed. A path on which nobody will answer any more goes as well; the error says
// which does not.
func (s *sockets) discard() error {
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

// removeSocket removes the file of a socket. What somebody has put in its place stays.
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

// export lists what is open. The descriptors stay ours.
func (s *sockets) export() (names []string, fds []int) {
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

// handed leaves the paths of unix sockets alone from now on.
func (s *sockets) handed() { s.unlink(false) }

// ours sees to the paths of unix sockets from now on.
func (s *sockets) ours() { s.unlink(true) }

func (s *sockets) unlink(onClose bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		if u, ok := c.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(onClose)
		}
	}
}
