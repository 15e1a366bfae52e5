package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Host is a machine of the lab.
type Host struct {
	Name  string
	Addr  string // its address in the lab's network
	Local string // its loopback address, where a stock master behind saltclusterd listens
	lab   *Lab
	dir   string
	etc   string // its hosts and resolv.conf; outside dir, which may be a disk that comes and goes
	ns    string // network namespace; empty: the machine's own
	disk  *disk  // nil: dir is a directory like any other
	small []*Small
	names map[string][]string // names that only this host knows, with their addresses

	mu   sync.Mutex
	runs map[*running]struct{} // everything that runs here
}

// Dir is the host's root directory: masters keep etc/, var/ and srv/ below it.
func (h *Host) Dir() string { return h.dir }

// Namespace is the name of the host's network namespace, empty in a loopback lab.
func (h *Host) Namespace() string { return h.ns }

// Lab is where the host belongs.
func (h *Host) Lab() *Lab { return h.lab }

// Do runs f on an operating system thread that is inside the host's network; sockets made by f itself stay there.
func (h *Host) Do(f func() error) error { return inNamespace(h.ns, f) }

// Dial connects from this host.
func (h *Host) Dial(ctx context.Context, network, addr string) (c net.Conn, err error) {
	err = h.Do(func() error {
		c, err = (&net.Dialer{}).DialContext(ctx, network, addr)
		return err
	})
	return c, err
}

// Listen listens on this host.
func (h *Host) Listen(ctx context.Context, network, addr string) (ln net.Listener, err error) {
	err = h.Do(func() error {
		ln, err = (&net.ListenConfig{}).Listen(ctx, network, addr)
		return err
	})
	return ln, err
}

// Accepts returns nil when something on the host answers a TCP connection to addr.
func (h *Host) Accepts(ctx context.Context, addr string) error {
	c, err := h.Dial(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}

// Resolve gives a name addresses on this host, instead of those that it had; without any the name is not found.
func (h *Host) Resolve(name string, addrs ...string) error {
	if h.names == nil {
		h.names = map[string][]string{}
	}
	h.names[name] = addrs
	return h.lab.writeHosts()
}

// writeHosts gives every host the names of all of them; processes see it as /etc/hosts.
func (l *Lab) writeHosts() error {
	for _, self := range l.hosts {
		var b strings.Builder
		fmt.Fprintf(&b, "127.0.0.1 localhost\n")
		for _, h := range l.hosts {
			fmt.Fprintf(&b, "%s %s\n", h.Addr, h.Name)
		}
		for name, addrs := range self.names {
			for _, addr := range addrs {
				fmt.Fprintf(&b, "%s %s\n", addr, name)
			}
		}
		// Written in place: running processes have this very inode mounted.
		if err := os.WriteFile(filepath.Join(self.etc, "hosts"), []byte(b.String()), 0o644); err != nil {
			return fmt.Errorf("write hosts of %s: %w", self.Name, err)
		}
		resolv := "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"
		if err := os.WriteFile(filepath.Join(self.etc, "resolv.conf"), []byte(resolv), 0o644); err != nil {
			return fmt.Errorf("write resolv.conf of %s: %w", self.Name, err)
		}
	}
	return nil
}
