package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// tls measures tcp inside of TLS against plain tcp, and an edge's handshakes and publications against those of Go's
// TLS.
func (b *bench) tls(ctx context.Context) error {
	sides := minionSides()
	both := [2]minionSide{sides[1], sides[3]}
	var req, pub [2][2]series
	var idle [2]series
	var shakes [2][2]series // Go's, the edge's: per second, µs of CPU for each
	var alone [2]series     // deliveries of Go's TLS alone, the same
	n := pick(b, 5000, 200)
	for range b.rounds {
		for i, p := range both {
			rate, cpu, err := p.ask(ctx, n, pick(b, 2*time.Second, 500*time.Millisecond))
			if err != nil {
				return fmt.Errorf("requests with %s: %w", p.name, err)
			}
			req[i][0].add(rate)
			req[i][1].add(cpu)
			rate, cpu, kib, err := p.follow(ctx, "pub", n)
			if err != nil {
				return fmt.Errorf("publications with %s: %w", p.name, err)
			}
			pub[i][0].add(rate)
			pub[i][1].add(cpu)
			idle[i].add(kib)
		}
		rate, cpu, _, err := both[1].follow(ctx, "tls", n)
		if err != nil {
			return fmt.Errorf("publications with crypto/tls alone: %w", err)
		}
		alone[0].add(rate)
		alone[1].add(cpu)
		for i, kind := range []string{"tls", "req"} {
			rate, cpu, err := shake(ctx, kind, pick(b, 2*time.Second, 500*time.Millisecond))
			if err != nil {
				return fmt.Errorf("handshakes with %s: %w", kind, err)
			}
			shakes[i][0].add(rate)
			shakes[i][1].add(cpu)
		}
	}
	b.compareSides(both[0], both[1], req, pub, idle, n)
	b.table("Publications inside of TLS",
		fmt.Sprintf("The same bursts to %d minions; crypto/tls alone writes what is ready made, 64 KiB at a time.", n),
		[]string{"", "crypto/tls alone", "edge", "ratio"}, [][]string{
			{"deliveries/s", alone[0].show("%.0f"), pub[1][0].show("%.0f"), pub[1][0].over(alone[0]).bold("%.2f")},
			{"CPU µs/delivery", alone[1].show("%.2f"), pub[1][1].show("%.2f"), pub[1][1].over(alone[1]).bold("%.2f")},
		})
	ratio, cost := shakes[1][0].over(shakes[0][0]), shakes[1][1].over(shakes[0][1])
	b.table("TLS handshakes",
		fmt.Sprintf("%d clients connect, shake hands (ECDSA P-256, no client certificate) and close.", shakers), []string{"", "crypto/tls alone", "edge", "ratio", "target", ""}, [][]string{
			{"handshakes/s", shakes[0][0].show("%.0f"), shakes[1][0].show("%.0f"), ratio.bold("%.2f"),
				fmt.Sprintf("≥ %.2f", handshakeGoal), atLeast(ratio, handshakeGoal)},
			{"CPU µs/handshake", shakes[0][1].show("%.0f"), shakes[1][1].show("%.0f"), cost.bold("%.2f"), "", ""},
		})
	return nil
}

// shakers is how many clients shake hands at a time.
const shakers = 32

// shake returns how many handshakes a server of a kind does in a second, and its CPU for each in µs.
func shake(ctx context.Context, kind string, span time.Duration) (rate, cpu float64, err error) {
	srv, port, err := server(ctx, "", kind, true)
	if err != nil {
		return 0, 0, err
	}
	defer srv.stop()
	client := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // what is measured is the server
	var done atomic.Int64
	var took time.Duration
	used, err := srv.spend(func() error {
		began := time.Now()
		var g errgroup.Group
		for range shakers {
			g.Go(func() error {
				for ; time.Since(began) < span; done.Add(1) {
					c, err := net.Dial("tcp", "127.0.0.1:"+port)
					if err != nil {
						return err
					}
					err = tls.Client(c, client).Handshake()
					_ = c.Close()
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		err := g.Wait()
		took = time.Since(began)
		return err
	})
	return float64(done.Load()) / took.Seconds(), used / float64(done.Load()), err
}

// serveTLS shakes hands by crypto/tls and reads until the client has left. What the side of a minion would get of
// publications it writes when it is told how many and of what size.
func serveTLS(addr string, p minionSide) error {
	l, err := tls.Listen("tcp", addr, selfSigned()())
	if err != nil {
		return err
	}
	var mu sync.Mutex
	clients := map[net.Conn]struct{}{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			clients[c] = struct{}{}
			mu.Unlock()
			go func() {
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
				mu.Lock()
				delete(clients, c)
				mu.Unlock()
			}()
		}
	}()
	fmt.Println("ready")
	for in := bufio.NewReader(os.Stdin); ; fmt.Println("sent") {
		var count, size int
		if _, err := fmt.Fscan(in, &count, &size); err != nil {
			return err
		}
		burst := make([]byte, count*p.delivered(size))
		var g errgroup.Group
		g.SetLimit(runtime.GOMAXPROCS(0))
		mu.Lock()
		for c := range clients {
			g.Go(func() error {
				_, err := c.Write(burst)
				return err
			})
		}
		mu.Unlock()
		if err := g.Wait(); err != nil {
			return err
		}
	}
}
