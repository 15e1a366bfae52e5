package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// ErrNeedsRoot is returned by network faults in a lab made of loopback addresses.
var ErrNeedsRoot = errors.New("network faults need root (network namespaces)")

// Options of a lab; the zero value is usable.
type Options struct {
	// where everything is kept; empty: a new temporary directory, removed by Close
	Dir   string
	Venvs string // virtualenvs, one per Salt version; empty: DefaultVenvs()
	// where saltclusterd and saltclusterctl are; empty: SALTCLUSTER_BIN, then bin/ of the module
	Bin      string
	Loopback bool   // use loopback addresses even as root; so does SALTCLUSTER_LAB=loopback
	IPv6     bool   // hosts have no IPv4 address but loopback's; needs namespaces
	Zone     string // the hosts' time zone; empty: UTC
	Keep     bool   // keep a temporary Dir for good
	// keep a temporary Dir on Close: until Remove, or, if the program ends without, until the next New
	Linger bool
	Logf   func(format string, args ...any) // progress lines; nil: silent
}

// Lab is a set of hosts with a network between them, and the processes on them.
type Lab struct {
	id    string // four hexadecimal digits, part of every namespace name
	dir   string
	temp  bool
	opts  Options
	lock  *os.File // held while we live, so that others can tell a stale lab
	net   network
	mu    sync.Mutex
	hosts []*Host
	procs []*Process
	gone  bool
	disks bool   // the directory is a mount of its own, see shareDisks
	share *Share // nil: there is none

	commands map[string]*commands // of Salt, by host, configuration and version
}

// network is what differs between namespaces and loopback addresses.
type network interface {
	addHost(ctx context.Context, name string, index int) (*Host, error)
	heal(ctx context.Context, hosts []*Host) error
	cut(ctx context.Context, from, to *Host) error
	delay(ctx context.Context, h *Host, l Latency) error
	close(ctx context.Context) error
}

// New makes an empty lab and removes what killed labs have left behind.
func New(ctx context.Context, o Options) (*Lab, error) {
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	if o.Venvs == "" {
		o.Venvs = DefaultVenvs()
	}
	if o.Bin == "" {
		o.Bin = os.Getenv("SALTCLUSTER_BIN")
	}
	if o.Bin == "" {
		o.Bin = filepath.Join(ModuleRoot(), "bin")
	}
	if o.Zone == "" {
		o.Zone = "UTC"
	}
	l := &Lab{opts: o}
	if err := l.takeName(); err != nil {
		return nil, err
	}
	if err := l.makeDir(); err != nil {
		return nil, errors.Join(err, l.releaseLock())
	}
	removeStale(ctx, l.id)
	var err error
	if o.Loopback || os.Geteuid() != 0 || os.Getenv("SALTCLUSTER_LAB") == "loopback" {
		l.net, err = newLoopbackNet()
	} else {
		l.net, err = newNamespaceNet(ctx, l)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the lab's network: %w", err), l.Remove())
	}
	return l, nil
}

// takeName picks a name that no other lab has.
func (l *Lab) takeName() error {
	for {
		var raw [2]byte
		rand.Read(raw[:])
		l.id, l.dir = hex.EncodeToString(raw[:]), l.opts.Dir
		if l.dir == "" {
			l.temp = true
			// A short path: Unix socket names below it are limited to 107 bytes.
			l.dir = filepath.Join(os.TempDir(), "scl"+l.id)
		}
		if err := l.takeLock(); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

func (l *Lab) makeDir() error {
	for _, d := range []string{"log", "out"} {
		if err := os.MkdirAll(filepath.Join(l.dir, d), 0o755); err != nil {
			return fmt.Errorf("make the lab's directory: %w", err)
		}
	}
	return nil
}

// remove removes a temporary directory, unless it is kept, and gives the name back.
func (l *Lab) remove() error {
	if l.lock == nil { // it has been
		return nil
	}
	var err error
	if l.temp && !l.opts.Keep {
		err = os.RemoveAll(l.dir)
	}
	return errors.Join(err, l.releaseLock())
}

// Remove is Close, and removes what lingers.
func (l *Lab) Remove() error { return errors.Join(l.Close(), l.remove()) }

// Dir is where the lab keeps everything; logs are in its folder "log".
func (l *Lab) Dir() string { return l.dir }

// ID is the lab's name: namespaces are called scl<id>-<host>.
func (l *Lab) ID() string { return l.id }

// Logf prints a progress line the way the lab's owner asked for.
func (l *Lab) Logf(format string, args ...any) { l.opts.Logf(format, args...) }

// Namespaces tells whether hosts are network namespaces, that is, whether network faults work.
func (l *Lab) Namespaces() bool { _, ok := l.net.(*namespaceNet); return ok }

// Host returns the host of that name, making it at the first call.
func (l *Lab) Host(ctx context.Context, name string) (*Host, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.hosts {
		if h.Name == name {
			return h, nil
		}
	}
	h, err := l.net.addHost(ctx, name, len(l.hosts)+1)
	if err != nil {
		return nil, fmt.Errorf("make host %s: %w", name, err)
	}
	h.lab, h.runs = l, map[*running]struct{}{}
	h.dir, h.etc = filepath.Join(l.dir, name), filepath.Join(l.dir, "net", name)
	for _, dir := range []string{h.dir, h.etc} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make host %s: %w", name, err)
		}
	}
	l.hosts = append(l.hosts, h)
	return h, l.writeHosts()
}

// Hosts returns all hosts in the order of their making.
func (l *Lab) Hosts() []*Host {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.hosts)
}

// Processes returns everything that was ever started here, in that order.
func (l *Lab) Processes() []*Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.procs)
}

// Close kills every process, removes the network and, when it was temporary and neither Keep nor Linger is set, the
// directory. A second Close does nothing.
func (l *Lab) Close() error {
	l.mu.Lock()
	again := l.gone
	l.gone = true
	l.mu.Unlock()
	if again {
		return nil
	}
	errs := []error{l.share.letGo()}
	for _, p := range l.Processes() {
		if err := p.Kill(); err != nil {
			errs = append(errs, err)
		}
	}
	l.mu.Lock()
	commands := l.commands
	l.mu.Unlock()
	for _, c := range commands {
		c.close()
	}
	for _, h := range l.Hosts() {
		errs = append(errs, h.closeDisk())
	}
	errs = append(errs, l.share.close(), l.unshareDisks())
	if l.net != nil {
		errs = append(errs, l.net.close(context.Background()))
	}
	if !l.opts.Linger {
		errs = append(errs, l.remove())
	}
	return errors.Join(errs...)
}

// Closed tells whether Close has been called.
func (l *Lab) Closed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// ModuleRoot is the directory of go.mod above the working directory; the working directory itself when there is none.
func ModuleRoot() string {
	wd, err := os.Getwd()
	if err != nil {
		return "."
	}
	for d := wd; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			return wd
		}
	}
}
