package lab

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Latency is what Delay does to every packet that leaves or reaches a host.
type Latency struct {
	Each   time.Duration // one way
	Jitter time.Duration // up to that much more, at random
	Loss   float64       // the share of packets that never arrive, 0 to 1, each way
}

// Partition cuts all traffic between the hosts of a and those of b, in both directions and without a word to either
// side, as a broken cable does. Traffic inside each group continues.
func (l *Lab) Partition(ctx context.Context, a, b []*Host) error {
	for _, x := range a {
		for _, y := range b {
			if err := l.Cut(ctx, x, y); err != nil {
				return err
			}
			if err := l.Cut(ctx, y, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// Cut loses what from sends to to; the other direction still works.
func (l *Lab) Cut(ctx context.Context, from, to *Host) error {
	if err := l.net.cut(ctx, from, to); err != nil {
		return fmt.Errorf("cut %s -> %s: %w", from.Name, to.Name, err)
	}
	return nil
}

// Isolate cuts the host from all others.
func (l *Lab) Isolate(ctx context.Context, h *Host) error {
	var rest []*Host
	for _, o := range l.Hosts() {
		if o != h {
			rest = append(rest, o)
		}
	}
	return l.Partition(ctx, []*Host{h}, rest)
}

// Delay slows down everything that leaves or reaches the host, and loses part of it, until Heal.
func (l *Lab) Delay(ctx context.Context, h *Host, by Latency) error {
	if err := l.net.delay(ctx, h, by); err != nil {
		return fmt.Errorf("delay %s: %w", h.Name, err)
	}
	return nil
}

// Heal ends every partition and delay.
func (l *Lab) Heal(ctx context.Context) error {
	if err := l.net.heal(ctx, l.Hosts()); err != nil {
		return fmt.Errorf("heal: %w", err)
	}
	return nil
}

// nowhere is a hardware address that no host has: what is sent there is lost on the bridge. That needs no packet
// filter.
const nowhere = "02:00:00:00:00:00"

func (n *namespaceNet) cut(ctx context.Context, from, to *Host) error {
	return ip(ctx, "-n", from.ns, "neigh", "replace", to.Addr, "lladdr", nowhere, "dev", "eth0", "nud", "permanent")
}

func (n *namespaceNet) heal(ctx context.Context, hosts []*Host) error {
	for _, h := range hosts {
		for _, to := range hosts {
			if h == to {
				continue
			}
			err := ip(ctx, "-n", h.ns, "neigh", "del", to.Addr, "dev", "eth0")
			if err != nil && !strings.Contains(err.Error(), "No such file") {
				return err
			}
		}
	}
	for _, l := range n.lines {
		l.set(Latency{})
	}
	return nil
}

// delay puts a line of our own between the host and the bridge at the first call and sets its latency at each. The
// kernel's netem would do the same, but many kernels come without it.
func (n *namespaceNet) delay(ctx context.Context, h *Host, by Latency) error {
	for _, l := range n.lines {
		if l.host == h.Name {
			l.set(by)
			return nil
		}
	}
	l, err := newDelayLine(ctx, n.sw, h.Name)
	if err != nil {
		return err
	}
	l.set(by)
	n.lines = append(n.lines, l)
	return nil
}
