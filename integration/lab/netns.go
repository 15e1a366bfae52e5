package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	nsPrefix = "scl"
	subnet   = "10.99.0." // the same in every lab: their networks never meet
	subnet6  = "fd00:99::"
)

// namespaceNet is a bridge in a namespace of its own with one veth pair to each host.
type namespaceNet struct {
	lab   *Lab
	sw    string // the namespace of the bridge
	names []string
	lines []*delayLine
}

func newNamespaceNet(ctx context.Context, l *Lab) (*namespaceNet, error) {
	n := &namespaceNet{lab: l, sw: nsPrefix + l.id + "-switch"}
	l.net = n // from here on Close has something to remove
	n.names = append(n.names, n.sw)
	return n, ips(ctx,
		"netns add "+n.sw,
		"-n "+n.sw+" link set lo up",
		"-n "+n.sw+" link add br0 type bridge",
		"-n "+n.sw+" link set br0 up")
}

func (n *namespaceNet) addHost(ctx context.Context, name string, index int) (*Host, error) {
	if index > 200 || len(name) > 8 {
		return nil, errors.New("a lab has at most 200 hosts, their names at most 8 letters")
	}
	h := &Host{Name: name, Addr: fmt.Sprint(subnet, 10+index), Local: "127.0.0.1", ns: nsPrefix + n.lab.id + "-" + name}
	network := h.Addr + "/24"
	if n.lab.opts.IPv6 {
		h.Addr = fmt.Sprint(subnet6, 10+index)
		network = h.Addr + "/64 nodad" // else the address is not usable for the first second
	}
	n.names = append(n.names, h.ns)
	err := ips(ctx,
		"netns add "+h.ns,
		"-n "+n.sw+" link add p-"+name+" type veth peer name eth0 netns "+h.ns,
		"-n "+n.sw+" link set p-"+name+" master br0 up",
		"-n "+h.ns+" link set lo up",
		"-n "+h.ns+" addr add "+network+" dev eth0",
		"-n "+h.ns+" link set eth0 up")
	if err != nil {
		return nil, err
	}
	return h, inNamespace(h.ns, manyPorts)
}

// manyPorts lets thousands of played minions, which all have one address, make connection after connection to one port:
// with the kernel's own values the ports run out, because each is kept for a minute after its end.
func manyPorts() error {
	for name, value := range map[string]string{"ip_local_port_range": "10240 65535", "tcp_tw_reuse": "1"} {
		if err := os.WriteFile(filepath.Join("/proc/sys/net/ipv4", name), []byte(value), 0); err != nil {
			return fmt.Errorf("set %s of a host: %w", name, err)
		}
	}
	return nil
}

func (n *namespaceNet) close(ctx context.Context) error {
	var errs []error
	for _, l := range n.lines {
		errs = append(errs, l.close())
	}
	for _, name := range n.names {
		if _, err := os.Stat(filepath.Join("/run/netns", name)); err == nil {
			errs = append(errs, ip(ctx, "netns", "del", name))
		}
	}
	return errors.Join(errs...)
}

// ips runs ip(8) once for each line.
func ips(ctx context.Context, lines ...string) error {
	for _, l := range lines {
		if err := ip(ctx, strings.Fields(l)...); err != nil {
			return err
		}
	}
	return nil
}

// ip runs ip(8). Its own -n also unshares the mount namespace, which fails in a chroot; nsenter(1) does not.
func ip(ctx context.Context, args ...string) error {
	if len(args) > 2 && args[0] == "-n" {
		return tool(ctx, "nsenter", append([]string{"--net=/run/netns/" + args[1], "ip"}, args[2:]...)...)
	}
	return tool(ctx, "ip", args...)
}

// tool runs one of the network tools; they live in sbin, which is not in everyone's PATH.
func tool(ctx context.Context, name string, args ...string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		path = filepath.Join("/usr/sbin", name)
	}
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// inNamespace runs f on a thread inside the namespace. The thread is thrown away afterwards: a locked goroutine that
// ends takes it along.
func inNamespace(ns string, f func() error) error {
	if ns == "" {
		return f()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := enterNamespace(ns); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

func enterNamespace(ns string) error {
	fd, err := unix.Open(filepath.Join("/run/netns", ns), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open namespace %s: %w", ns, err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter namespace %s: %w", ns, err)
	}
	return nil
}
