package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/zmtp"
)

const (
	perSubscriberGoal = 40.0  // KiB
	baseGoal          = 120.0 // MiB
)

// memory measures saltclusterd with idle subscribers, each round with a process that was just started.
func (b *bench) memory(ctx context.Context) error {
	counts := pick(b, []int{5000, 10_000}, []int{1000})
	var base series
	per := make([]series, len(counts))
	settle := pick(b, 11*time.Second, 3*time.Second) // longer than a heartbeat
	for round := range min(b.rounds, 3) {
		err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
			_, t, err := b.standIn(ctx, l)
			if err != nil {
				return err
			}
			b.say("idle subscribers, round %d", round+1)
			return t.memoryRound(ctx, counts, settle, &base, per)
		})
		if err != nil {
			return err
		}
	}
	rows := [][]string{append([]string{"0", base.show("%.1f") + " MiB"}, judged(base, "%.0f MiB", baseGoal)...)}
	for i, count := range counts {
		rows = append(rows, append([]string{strconv.Itoa(count), per[i].bold("%.1f") + " KiB"},
			judged(per[i], "%.0f KiB", perSubscriberGoal)...))
	}
	b.table("Memory with idle subscribers", fmt.Sprintf(
		"Resident memory of saltclusterd without subscribers, and the memory each subscriber adds, measured %s after the "+
			"last one connected.", settle),
		[]string{"subscribers", "saltclusterd", "target", ""}, rows)
	return nil
}

func (t *target) memoryRound(
	ctx context.Context, counts []int, settle time.Duration, base *series, per []series,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	before, err := memoryOf(t.daemon.PID(), "VmRSS")
	if err != nil {
		return err
	}
	base.add(before / mib)
	lost, have := make(chan error, 1), 0
	for i, count := range counts {
		if err := t.subscribe(ctx, count-have, lost); err != nil {
			return err
		}
		have = count
		if err := sleep(ctx, settle); err != nil {
			return err
		}
		after, err := memoryOf(t.daemon.PID(), "VmRSS")
		if err != nil {
			return err
		}
		per[i].add((after - before) / float64(count) / kib)
		select {
		case err := <-lost:
			return fmt.Errorf("lost a subscriber: %w", err)
		default:
		}
	}
	return nil
}

// subscribe connects count subscribers, which answer heartbeats until ctx ends; the first that is cut is told to lost.
func (t *target) subscribe(ctx context.Context, count int, lost chan<- error) error {
	const joiners = 4
	addr := strings.TrimSuffix(t.addr, "6") + "5"
	join := func() error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		z, err := zmtp.NewClient(ctx, c, zmtp.ClientOptions{SocketType: "SUB"})
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = z.Close() })
		go func() {
			for {
				if _, err := z.ReadMessage(); err != nil {
					select {
					case lost <- err:
					default:
					}
					return
				}
			}
		}()
		return z.Subscribe(nil)
	}
	var g errgroup.Group
	for first := range joiners {
		g.Go(func() error {
			return t.from.Do(func() (err error) { // enters the host's network once, not once for each
				for i := first; i < count && err == nil; i += joiners {
					err = join()
				}
				return err
			})
		})
	}
	return g.Wait()
}
