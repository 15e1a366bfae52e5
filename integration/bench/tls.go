package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// tls measures tcp inside of TLS against plain tcp, and handshakes of an edge against those of Go's TLS.
func (b *bench) tls(ctx context.Context) error {
	sides := minionSides()
	both := [2]minionSide{sides[1], sides[3]}
	var req, pub [2][2]series
	var idle [2]series
	var shakes [2][2]series // Go's, the edge's: per second, µs of CPU for each
	n := pick(b, 5000, 200)
	for range b.rounds {
		for i, p := range both {
			rate, cpu, err := p.ask(ctx, n, pick(b, 2*time.Second, 500*time.Millisecond))
			if err != nil {
				return fmt.Errorf("requests with %s: %w", p.name, err)
			}
			req[i][0].add(rate)
			req[i][1].add(cpu)
			rate, cpu, kib, err := p.follow(ctx, n)
			if err != nil {
				return fmt.Errorf("publications with %s: %w", p.name, err)
			}
			pub[i][0].add(rate)
			pub[i][1].add(cpu)
			idle[i].add(kib)
		}
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

// serveTLS shakes hands by crypto/tls and reads until the client has left.
func serveTLS(addr string) error {
	l, err := tls.Listen("tcp", addr, selfSigned()())
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
