package main

import (
	"fmt"
	"net"
	"time"

	"saltclusterd/sidecar/zmtp"
)

func fanoutHead(mode string) string {
	title := "Bursts through the publish port"
	if mode == "stalled" {
		title = "The same with one subscriber that never reads (edge against itself without)"
	}
	names := [2]string{"libzmq PUB", "edge"}
	if mode == "stalled" {
		names = [2]string{"edge", "edge, one stalled"}
	}
	return fmt.Sprintf(`
## %s

| subscribers | bytes | %s deliveries/s | %s | ratio | CPU µs/delivery | | MiB after |
|---|---|---|---|---|---|---|---|
`, title, names[0], names[1])
}

func (b *bench) fanout(clients, size int, stalled bool) error {
	var left, right series
	for range b.o.rounds {
		for _, s := range []*series{&left, &right} {
			ours := stalled || s == &right
			rate, cpu, rss, err := b.fanoutOnce(clients, size, ours, stalled && s == &right)
			if err != nil {
				return err
			}
			s.add(rate, cpu, rss)
		}
	}
	fmt.Printf("| %d | %d | %s | %s | **%s** | %s | %s | %s |\n", clients, size,
		left.show(0, "%.0f"), right.show(0, "%.0f"), ratio(&right, &left, 0),
		left.show(1, "%.2f"), right.show(1, "%.2f"), right.show(2, "%.0f"))
	return nil
}

// fanoutOnce publishes bursts, each when the one before has arrived
// everywhere: a burst that is not complete at every subscriber hangs, so
// nothing can be lost unnoticed.
func (b *bench) fanoutOnce(clients, size int, ours, stalled bool) (rate, cpu, rss float64, err error) {
	srv, port, err := b.server("pub", ours)
	if err != nil {
		return 0, 0, 0, err
	}
	defer srv.stop()
	cl, err := start(b.ctx, b.load, "sub", port, fmt.Sprint(clients))
	if err != nil {
		return 0, 0, 0, err
	}
	defer cl.stop()
	if err := connected(port, clients); err != nil {
		return 0, 0, 0, err
	}
	if err := joined(srv, cl); err != nil {
		return 0, 0, 0, err
	}
	if stalled {
		c, err := stall(port)
		if err != nil {
			return 0, 0, 0, err
		}
		defer c.Close()
	}
	const bursts = 4
	burst := max(b.o.bytes/size, 4)
	before := srv.cpu()
	var took time.Duration
	for i := range bursts + 1 {
		if i == 1 { // the first warms up
			took, before = 0, srv.cpu()
		}
		t := time.Now()
		if err := b.burst(srv, cl, burst, size); err != nil {
			return 0, 0, 0, err
		}
		took += time.Since(t)
	}
	n := float64(bursts * burst * clients)
	return n / took.Seconds(), float64((srv.cpu()-before)/time.Microsecond) / n, float64(srv.rss()) / (1 << 20), nil
}

// joined publishes until every subscriber has heard something, and waits for
// what is left of it: connections stand before subscriptions do.
func joined(srv, cl *proc) error {
	if err := cl.say("1"); err != nil {
		return err
	}
	heard := make(chan error, 1)
	go func() { heard <- cl.expect("ok") }()
	for {
		if err := srv.say("1 10"); err != nil {
			return err
		}
		if err := srv.expect("sent"); err != nil {
			return err
		}
		select {
		case err := <-heard:
			if err != nil {
				return err
			}
			time.Sleep(500 * time.Millisecond)
			if err := cl.say("0"); err != nil {
				return err
			}
			return cl.expect("ok")
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (b *bench) burst(srv, cl *proc, count, size int) error {
	if err := cl.say("%d", count); err != nil {
		return err
	}
	if err := srv.say("%d %d", count, size); err != nil {
		return err
	}
	if err := srv.expect("sent"); err != nil {
		return err
	}
	return cl.expect("ok")
}

// stall subscribes and never reads again.
func stall(port string) (net.Conn, error) {
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return nil, err
	}
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	hello := zmtp.AppendReady(zmtp.AppendGreeting(nil), "SUB", "")
	_, err = c.Write(zmtp.AppendSubscribe(hello, nil))
	return c, err
}
