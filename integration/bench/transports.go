package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
	"golang.org/x/sync/errgroup"

	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/saltwire/tcpframe"
	"saltclusterd/sidecar/saltwire/wsframe"
	"saltclusterd/sidecar/zmtp"
)

// minionSide is what a minion says and reads in one transport.
type minionSide struct {
	name      string
	hello     map[string][]byte // by kind of server
	greeted   map[string]int    // bytes that the server answers
	request   []byte
	answer    int // bytes
	delivered func(size int) int
	secured   bool // inside of TLS
}

// webSocket is how a minion with ws opens a connection, and webSocketAnswer what is said then.
const (
	webSocket = "GET /ws HTTP/1.1\r\nHost: edge\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	webSocketAnswer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)

const benchMID = "\x81\xa3mid\xda\x00\x243f2b8c1e-5b0a-4d63-9f0e-2f6f8f6d1c11"

func minionSides() []minionSide {
	hello := func(socket string) []byte { return zmtp.AppendReady(zmtp.AppendGreeting(nil), socket, "") }
	body := saltwire.AppendRaw(nil, strings.Repeat("x", 200))
	frame := func(head string, body []byte) []byte {
		return append(tcpframe.AppendReplyHead(nil, []byte(head)), body...)
	}
	request := frame(benchMID, body)
	tcp := minionSide{
		name:      "tcp",
		hello:     map[string][]byte{"req": request, "pub": frame("\x80", saltwire.AppendRaw(nil, "minion"))},
		greeted:   map[string]int{"req": len(request)},
		request:   request,
		answer:    len(request),
		delivered: func(size int) int { return len(tcpframe.AppendPublication(nil, make([]byte, size))) },
	}
	secured := tcp
	secured.name, secured.secured = "tcp+tls", true
	return []minionSide{{
		name:      "zeromq",
		hello:     map[string][]byte{"req": hello("REQ"), "pub": zmtp.AppendSubscribe(hello("SUB"), nil)},
		greeted:   map[string]int{"req": len(hello("ROUTER")), "pub": len(hello("PUB"))},
		request:   zmtp.AppendMessage(nil, nil, body),
		answer:    len(zmtp.AppendMessage(nil, nil, body)),
		delivered: func(size int) int { return zmtp.MessageSize(make([]byte, size)) },
	}, tcp, {
		name:      "ws",
		hello:     map[string][]byte{"req": []byte(webSocket), "pub": []byte(webSocket)},
		greeted:   map[string]int{"req": len(webSocketAnswer), "pub": len(webSocketAnswer)},
		request:   ws.MustCompileFrame(ws.MaskFrame(ws.NewBinaryFrame(body))),
		answer:    len(wsframe.AppendHeader(nil, len(body))) + len(body),
		delivered: func(size int) int { return len(wsframe.AppendPublication(nil, make([]byte, size))) },
	}, secured}
}

// named is edge.PubConfig.Identify of subscribers that say their id in clear.
func named(said []byte) (string, bool) {
	id, ok := saltwire.Bytes(said)
	return string(id), ok
}

// transports measures Salt's other transports against zeromq at the same edge, with the same clients, which are ours.
// Those with ws keep their connections, other than Salt's.
func (b *bench) transports(ctx context.Context) error {
	sides := minionSides()
	req, pub := make([][2]series, len(sides)), make([][2]series, len(sides)) // per second, µs of CPU for each
	idle := make([]series, len(sides))                                       // KiB for each subscriber
	n := pick(b, 1000, 200)
	for range b.rounds {
		for i, p := range sides {
			rate, cpu, err := p.ask(ctx, n, pick(b, 2*time.Second, 500*time.Millisecond))
			if err != nil {
				return fmt.Errorf("requests with %s: %w", p.name, err)
			}
			req[i][0].add(rate)
			req[i][1].add(cpu)
			if rate, cpu, kib, err := p.follow(ctx, "pub", n); err != nil {
				return fmt.Errorf("publications with %s: %w", p.name, err)
			} else {
				pub[i][0].add(rate)
				pub[i][1].add(cpu)
				idle[i].add(kib)
			}
		}
	}
	for i, p := range sides[1:] {
		b.compareSides(sides[0], p, [2][2]series{req[0], req[i+1]}, [2][2]series{pub[0], pub[i+1]},
			[2]series{idle[0], idle[i+1]}, n)
	}
	return nil
}

const (
	transportGoal         = 0.85 // of zeromq's rate
	securedGoal           = 0.5  // of the rate without TLS
	handshakeGoal         = 0.8  // of crypto/tls's rate
	securedSubscriberGoal = 60.0 // KiB
)

// compareSides prints the figures of two transports. The rates with TLS have goals against the same transport without.
func (b *bench) compareSides(base, other minionSide, req, pub [2][2]series, idle [2]series, n int) {
	row := func(what, format string, sides [2]series, goal ...string) []string {
		ratio := sides[1].over(sides[0]).bold("%.2f")
		return append([]string{what, sides[0].show(format), sides[1].show(format), ratio}, goal...)
	}
	rate := func(what string, sides [2]series) []string {
		ratio, goal := sides[1].over(sides[0]), transportGoal
		switch {
		case other.secured && base.name == "zeromq":
			return row(what, "%.0f", sides, "", "")
		case other.secured:
			goal = securedGoal
		}
		return row(what, "%.0f", sides, fmt.Sprintf("≥ %.2f", goal), atLeast(ratio, goal))
	}
	memory := perSubscriberGoal
	if other.secured {
		memory = securedSubscriberGoal
	}
	of := func(i int, of [2][2]series) [2]series { return [2]series{of[0][i], of[1][i]} }
	b.table("Salt's transports "+other.name+" and "+base.name+" on one port",
		fmt.Sprintf("%d minions: requests of 200 bytes in lockstep, bursts of publications of 1,024 bytes.", n),
		[]string{"", base.name, other.name, "ratio", "target", ""}, [][]string{
			rate("requests/s", of(0, req)), row("CPU µs/request", "%.1f", of(1, req), "", ""),
			rate("deliveries/s", of(0, pub)), row("CPU µs/delivery", "%.2f", of(1, pub), "", ""),
			row("KiB/idle subscriber", "%.1f", idle, judged(idle[1], "%.0f KiB", memory)...),
		})
}

// connect opens n connections that have said hello.
func (p minionSide) connect(port, kind string, n int) (conns []net.Conn, err error) {
	for range n {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
		if p.secured {
			c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // what is measured is the server
			conns[len(conns)-1] = c
		}
		if _, err := c.Write(p.hello[kind]); err != nil {
			return conns, err
		}
		if _, err := io.CopyN(io.Discard, c, int64(p.greeted[kind])); err != nil {
			return conns, err
		}
	}
	return conns, nil
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

// ask returns how many requests per second n connections have answered, and the server's CPU for each in µs.
func (p minionSide) ask(ctx context.Context, n int, span time.Duration) (rate, cpu float64, err error) {
	srv, port, err := server(ctx, "", "req", true)
	if err != nil {
		return 0, 0, err
	}
	defer srv.stop()
	conns, err := p.connect(port, "req", n)
	defer closeAll(conns)
	if err != nil {
		return 0, 0, err
	}
	var done atomic.Int64
	var took time.Duration
	used, err := srv.spend(func() error {
		began := time.Now()
		var g errgroup.Group
		for _, c := range conns {
			g.Go(func() error {
				for in := make([]byte, p.answer); time.Since(began) < span; done.Add(1) {
					if _, err := c.Write(p.request); err != nil {
						return err
					}
					if _, err := io.ReadFull(c, in); err != nil {
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

// follow returns how many deliveries per second n subscribers of a kind of server get, the server's CPU for each in µs,
// and its memory for each of them while nothing is published, in KiB.
func (p minionSide) follow(ctx context.Context, kind string, n int) (rate, cpu, kib float64, err error) {
	const count, size = burstBytes / 1024, 1024
	srv, port, err := server(ctx, "", kind, true)
	if err != nil {
		return 0, 0, 0, err
	}
	defer srv.stop()
	empty, err := memoryOf(srv.cmd.Process.Pid, "VmRSS")
	if err != nil {
		return 0, 0, 0, err
	}
	conns, err := p.connect(port, "pub", n)
	defer closeAll(conns)
	if err != nil {
		return 0, 0, 0, err
	}
	time.Sleep(time.Second) // the last ones subscribe
	full, err := memoryOf(srv.cmd.Process.Pid, "VmRSS")
	if err != nil {
		return 0, 0, 0, err
	}
	burst := func() error {
		var failed atomic.Pointer[error]
		var wg sync.WaitGroup
		for _, c := range conns {
			wg.Go(func() {
				if _, err := io.CopyN(io.Discard, c, int64(count*p.delivered(size))); err != nil {
					failed.Store(&err)
				}
			})
		}
		if err := srv.expect("sent", fmt.Sprint(count, " ", size)); err != nil {
			return err
		}
		wg.Wait()
		if err := failed.Load(); err != nil {
			return *err
		}
		return nil
	}
	if err := burst(); err != nil { // warms up
		return 0, 0, 0, err
	}
	began := time.Now()
	used, err := srv.spend(func() (err error) {
		for i := 0; i < bursts && err == nil; i++ {
			err = burst()
		}
		return err
	})
	took := time.Since(began)
	deliveries := float64(bursts * count * n)
	return deliveries / took.Seconds(), used / deliveries, (full - empty) / 1024 / float64(n), err
}
