package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/zmtp"
)

const (
	kib = 1 << 10
	mib = 1 << 20

	perSubscriberGoal = 40.0  // KiB, the kernel's share included
	baseGoal          = 120.0 // MiB
)

// memory measures saltclusterd with idle subscribers, each round with a process that was just started.
func (b *bench) memory(ctx context.Context, n *standInNode) error {
	var base series
	per, buffers := make([]series, len(b.subscribers)), make([]series, len(b.subscribers))
	for round := range b.memoryRounds {
		b.say("idle subscribers, round %d", round+1)
		if err := restart(ctx, n.daemon); err != nil {
			return err
		}
		if err := b.memoryRound(ctx, n, &base, per, buffers); err != nil {
			return err
		}
	}
	objects := kernelObjects() / kib
	rows := [][]string{{"0", base.show("%.1f") + " MiB", "–", "–", "–", fmt.Sprintf("≤ %.0f MiB", baseGoal), atMost(base, baseGoal)}}
	for i, count := range b.subscribers {
		var sum series
		for k := range per[i] {
			sum.add(per[i][k] + objects + buffers[i][k])
		}
		rows = append(rows, []string{
			strconv.Itoa(count), per[i].show("%.1f") + " KiB", fmt.Sprintf("%.1f KiB", objects), buffers[i].show("%.1f") + " KiB",
			"**" + sum.show("%.1f") + " KiB**", fmt.Sprintf("≤ %.0f KiB", perSubscriberGoal), atMost(sum, perSubscriberGoal),
		})
	}
	b.out.table("Memory with idle subscribers", fmt.Sprintf(
		"Resident memory of saltclusterd %s after the last connection, from its value with none, by subscriber. The kernel keeps for "+
			"each connection a socket, its inode, file, directory entry and epoll entry (sizes from /proc/slabinfo), and buffers (TCP mem of "+
			"/proc/net/sockstat, both ends together and of the whole machine).", b.settle),
		[]string{"subscribers", "saltclusterd", "kernel objects", "kernel buffers", "sum", "target", ""}, rows)
	return nil
}

func restart(ctx context.Context, d *lab.Daemon) error {
	if err := d.Stop(ctx); err != nil {
		return err
	}
	if err := d.Start(ctx); err != nil {
		return err
	}
	if err := d.WaitReady(ctx, startWithin); err != nil {
		return err
	}
	return d.Serving(ctx, startWithin)
}

func (b *bench) memoryRound(ctx context.Context, n *standInNode, base *series, per, buffers []series) error {
	s := &audience{from: n.through.from, addr: strings.TrimSuffix(n.through.addr, "6") + "5"}
	defer s.leave()
	before, err := b.settled(ctx, n.daemon)
	if err != nil {
		return err
	}
	tcp := socketBuffers()
	base.add(before / mib)
	for i, count := range b.subscribers {
		if err := s.grow(ctx, count); err != nil {
			return err
		}
		after, err := b.settled(ctx, n.daemon)
		if err != nil {
			return err
		}
		per[i].add((after - before) / float64(count) / kib)
		buffers[i].add(max(0, socketBuffers()-tcp) / float64(count) / kib)
		if err := s.lost(); err != nil {
			return fmt.Errorf("a subscriber did not stay: %w", err)
		}
	}
	return nil
}

// settled waits and returns the resident memory then.
func (b *bench) settled(ctx context.Context, d *lab.Daemon) (float64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(b.settle):
	}
	return residentBytes(d.PID())
}

// audience is subscribers that read and never hear anything but heartbeats.
type audience struct {
	from *lab.Host
	addr string
	all  []*zmtp.Client
	gone chan error
}

// joiners is how many join at a time.
const joiners = 4

// grow brings the audience to count.
func (s *audience) grow(ctx context.Context, count int) error {
	if s.gone == nil {
		s.gone = make(chan error, 1)
	}
	fresh := make([]*zmtp.Client, count-len(s.all))
	var g errgroup.Group
	for first := range joiners {
		g.Go(func() error {
			return s.from.Do(func() (err error) { // enters the host once, not once for each
				for i := first; i < len(fresh) && err == nil; i += joiners {
					fresh[i], err = s.join(ctx)
				}
				return err
			})
		})
	}
	err := g.Wait()
	for _, z := range fresh {
		if z != nil {
			s.all = append(s.all, z)
		}
	}
	return err
}

// join connects one subscriber; it is called on the host.
func (s *audience) join(ctx context.Context) (*zmtp.Client, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	z, err := zmtp.NewClient(ctx, c, zmtp.ClientOptions{SocketType: "SUB"})
	if err != nil {
		return nil, err
	}
	if err := z.Subscribe(nil); err != nil {
		_ = z.Close()
		return nil, err
	}
	go s.listen(z)
	return z, nil
}

// listen reads until the connection ends; heartbeats are answered by that.
func (s *audience) listen(z *zmtp.Client) {
	for {
		if _, err := z.ReadMessage(); err != nil {
			select {
			case s.gone <- err:
			default: // the first one counts
			}
			return
		}
	}
}

// lost returns why a subscriber was cut, nil when all are there.
func (s *audience) lost() error {
	select {
	case err := <-s.gone:
		return err
	default:
		return nil
	}
}

func (s *audience) leave() {
	for _, z := range s.all {
		_ = z.Close()
	}
}

// kernelObjects is what the kernel keeps for one TCP connection that is watched by epoll, in bytes; 0 when it does not tell.
func kernelObjects() float64 {
	raw, err := os.ReadFile("/proc/slabinfo")
	if err != nil {
		return 0
	}
	sum := 0.0
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		switch f[0] {
		case "TCP", "sock_inode_cache", "filp", "dentry", "eventpoll_epi", "ep_item":
			size, err := strconv.ParseFloat(f[3], 64)
			if err == nil {
				sum += size
			}
		}
	}
	return sum
}

// socketBuffers is what all TCP sockets of the machine hold in buffers, in bytes.
func socketBuffers() float64 {
	raw, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "TCP:"); ok {
			f := strings.Fields(rest)
			for i := 0; i+1 < len(f); i += 2 {
				if f[i] == "mem" {
					pages, _ := strconv.ParseFloat(f[i+1], 64)
					return pages * float64(os.Getpagesize())
				}
			}
		}
	}
	return 0
}
