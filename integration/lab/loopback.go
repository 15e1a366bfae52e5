package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// loopbackNet gives each host two addresses out of 127.0.0.0/8. A lock file per lab keeps two labs apart.
type loopbackNet struct {
	octet int
	lock  *os.File
}

func newLoopbackNet() (*loopbackNet, error) {
	for octet := 50; octet < 250; octet++ {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("%slo%d", lockPrefix, octet))
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			continue // another user's
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return &loopbackNet{octet: octet, lock: f}, nil
		}
		f.Close()
	}
	return nil, errors.New("no free loopback addresses: 200 labs are running")
}

func (n *loopbackNet) addHost(_ context.Context, name string, index int) (*Host, error) {
	if index > 200 {
		return nil, errors.New("a lab has at most 200 hosts")
	}
	addr := func(last int) string { return fmt.Sprintf("127.%d.%d.%d", n.octet, 10+index, last) }
	return &Host{Name: name, Addr: addr(1), Local: addr(2)}, nil
}

func (n *loopbackNet) heal(context.Context, []*Host) error         { return nil }
func (n *loopbackNet) cut(context.Context, *Host, *Host) error     { return ErrNeedsRoot }
func (n *loopbackNet) delay(context.Context, *Host, Latency) error { return ErrNeedsRoot }
func (n *loopbackNet) close(context.Context) error                 { return n.lock.Close() }
