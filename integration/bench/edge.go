package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"saltclusterd/sidecar/edge"
)

//go:embed load/load.c
var loadSource []byte

const (
	burstBytes = 65536 // per subscriber, at least four publications
	bursts     = 4
)

// libzmq builds the load generator and yardstick in C, which is also libzmq's server.
func libzmq(ctx context.Context, f func(load string) error) (err error) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source, load := filepath.Join(dir, "load.c"), filepath.Join(dir, "load")
	if err := os.WriteFile(source, loadSource, 0o600); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "gcc", "-O2", "-o", load, source, "-lzmq", "-lpthread").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the load generator (needs gcc and libzmq3-dev): %w\n%s", err, out)
	}
	return f(load)
}

// server starts ours, which is this program, or libzmq's of a kind on a free port.
func server(ctx context.Context, load, kind string, ours bool) (*child, string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err := errors.Join(err, ln.Close()); err != nil {
		return nil, "", err
	}
	argv := []string{load, map[string]string{"req": "router", "pub": "pub"}[kind], port}
	if ours {
		self, err := os.Executable()
		if err != nil {
			return nil, "", err
		}
		argv = []string{self, "serve", kind, port}
	}
	c, err := startChild(ctx, argv...)
	return c, port, err
}

// against lets libzmq and ours take turns with every number of clients and size, once giving three figures.
func (b *bench) against(
	ctx context.Context, sizes []int, once func(load, clients string, size int, ours bool) ([3]float64, error),
	row func(clients string, size int, theirs, ours [3]series),
) error {
	return libzmq(ctx, func(load string) error {
		for _, size := range sizes {
			for _, clients := range pick(b, []string{"1000", "5000"}, []string{"200"}) {
				b.say("%s clients, %d bytes, against libzmq", clients, size)
				var sides [2][3]series
				for range b.rounds {
					for i := range sides {
						figures, err := once(load, clients, size, i == 1)
						if err != nil {
							return fmt.Errorf("%s clients, %d bytes: %w", clients, size, err)
						}
						for k, v := range figures {
							sides[i][k].add(v)
						}
					}
				}
				row(clients, size, sides[0], sides[1])
			}
		}
		return nil
	})
}

// echo measures requests of libzmq's REQ sockets in lockstep: requests per second, ms, µs of the server's CPU for each.
func (b *bench) echo(ctx context.Context) error {
	var rows [][]string
	err := b.against(ctx, []int{200}, func(load, clients string, size int, ours bool) (f [3]float64, err error) {
		srv, port, err := server(ctx, load, "req", ours)
		if err != nil {
			return f, err
		}
		defer srv.stop()
		cl, err := startChild(ctx, load, "req", port, clients, pick(b, "1", "0.5"), strconv.Itoa(size))
		if err != nil {
			return f, err
		}
		defer cl.stop()
		var done, took, p50, p99 float64
		used, err := srv.spend(func() error {
			line, err := cl.talk("go")
			if err != nil {
				return err
			}
			_, err = fmt.Sscan(line, &done, &took, &p50, &p99)
			return err
		})
		return [3]float64{done / took, p99 * 1e3, used / done}, err
	}, func(clients string, _ int, theirs, ours [3]series) {
		rows = append(rows, []string{
			clients, theirs[0].show("%.0f"), ours[0].show("%.0f"), ours[0].over(theirs[0]).bold("%.2f"), theirs[1].show("%.1f"),
			ours[1].show("%.1f"), ours[1].over(theirs[1]).bold("%.2f"), theirs[2].show("%.1f"), ours[2].show("%.1f"),
		})
	})
	if err != nil {
		return err
	}
	b.table("Echo through the request port", "REQ sockets of libzmq send requests in lockstep.", []string{
		"clients", "libzmq ROUTER req/s", "edge req/s", "ratio", "p99 ms libzmq", "p99 ms edge", "ratio",
		"CPU µs/req libzmq", "edge",
	}, rows)
	return nil
}

// fanout measures bursts to libzmq's SUB sockets, each when the one before has arrived everywhere, so that a loss
// hangs: deliveries per second, µs of the server's CPU for each, MiB of the server afterwards.
func (b *bench) fanout(ctx context.Context) error {
	var rows [][]string
	sizes := pick(b, []int{1024, 65536}, []int{1024})
	err := b.against(ctx, sizes, func(load, clients string, size int, ours bool) ([3]float64, error) {
		return fanoutOnce(ctx, load, clients, size, ours)
	}, func(clients string, size int, theirs, ours [3]series) {
		rows = append(rows, []string{
			clients, strconv.Itoa(size), theirs[0].show("%.0f"), ours[0].show("%.0f"), ours[0].over(theirs[0]).bold("%.2f"),
			theirs[1].show("%.2f"), ours[1].show("%.2f"), ours[2].show("%.0f"),
		})
	})
	if err != nil {
		return err
	}
	b.table("Bursts through the publish port",
		"SUB sockets of libzmq receive bursts. Each burst starts when the previous one has arrived everywhere.", []string{
			"subscribers", "bytes", "libzmq PUB deliveries/s", "edge", "ratio", "CPU µs/delivery libzmq", "edge",
			"MiB after, edge",
		}, rows)
	return nil
}

func fanoutOnce(ctx context.Context, load, clients string, size int, ours bool) (f [3]float64, err error) {
	srv, port, err := server(ctx, load, "pub", ours)
	if err != nil {
		return f, err
	}
	defer srv.stop()
	cl, err := startChild(ctx, load, "sub", port, clients)
	if err != nil {
		return f, err
	}
	defer cl.stop()
	if err := joined(srv, cl); err != nil {
		return f, err
	}
	count := max(burstBytes/size, 4)
	burst := func() error {
		if err := cl.say(strconv.Itoa(count)); err != nil {
			return err
		}
		if err := srv.expect("sent", fmt.Sprint(count, " ", size)); err != nil {
			return err
		}
		return cl.expect("ok")
	}
	if err := burst(); err != nil { // warms up
		return f, err
	}
	began := time.Now()
	used, err := srv.spend(func() (err error) {
		for i := 0; i < bursts && err == nil; i++ {
			err = burst()
		}
		return err
	})
	if err != nil {
		return f, err
	}
	subscribers, err := strconv.Atoi(clients)
	if err != nil {
		return f, err
	}
	n := float64(bursts * count * subscribers)
	f = [3]float64{n / time.Since(began).Seconds(), used / n, 0}
	f[2], err = memoryOf(srv.cmd.Process.Pid, "VmRSS")
	f[2] /= mib
	return f, err
}

// joined publishes until every subscriber has heard something, and discards the rest.
func joined(srv, cl *child) error {
	if err := cl.say("1"); err != nil {
		return err
	}
	heard := make(chan error, 1)
	go func() { heard <- cl.expect("ok") }()
	for {
		if err := srv.expect("sent", "1 10"); err != nil {
			return err
		}
		select {
		case err := <-heard:
			if err != nil {
				return err
			}
			time.Sleep(500 * time.Millisecond)
			return cl.expect("ok", "0")
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// child is a child process that is talked to in lines.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(ctx context.Context, argv ...string) (*child, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd, in, bufio.NewReader(out)}
	if err := c.expect("ready"); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *child) stop() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func (c *child) say(line string) error {
	_, err := fmt.Fprintln(c.in, line)
	return err
}

// talk says lines and returns the one that is answered.
func (c *child) talk(lines ...string) (string, error) {
	for _, l := range lines {
		if err := c.say(l); err != nil {
			return "", err
		}
	}
	s, err := c.out.ReadString('\n')
	return strings.TrimSpace(s), err
}

func (c *child) expect(want string, lines ...string) error {
	got, err := c.talk(lines...)
	if err == nil && got != want {
		err = fmt.Errorf("child said %q, not %q", got, want)
	}
	return err
}

// spend runs f and returns µs of CPU that the child used meanwhile.
func (c *child) spend(f func() error) (float64, error) {
	before, err := ownCPU(c.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := ownCPU(c.cmd.Process.Pid)
	return float64((after - before).Nanoseconds()) / 1000, err
}

// echoing answers every request with itself.
type echoing struct{}

func (echoing) ServeReq(_ context.Context, r *edge.Request) { r.Reply(r.Body) }

// serve is the server under test, in a process of its own: serve req|pub PORT; serve tls PORT: Go's TLS alone.
func serve(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: serve req|pub|tls PORT")
	}
	if args[0] == "tls" {
		return serveTLS("127.0.0.1:"+args[1], minionSides()[3])
	}
	ctx, addrs := context.Background(), []string{"127.0.0.1:" + args[1]}
	if args[0] == "req" {
		e, err := edge.NewReqEdge(edge.ReqConfig{Addrs: addrs, Handler: echoing{}, Served: edge.Served{TLS: selfSigned()}})
		if err != nil {
			return err
		}
		if err := e.Open(ctx); err != nil {
			return err
		}
		fmt.Println("ready")
		_, err = io.Copy(io.Discard, os.Stdin)
		return err
	}
	e, err := edge.NewPubEdge(edge.PubConfig{Addrs: addrs, Identify: named, Targeted: func() bool { return true },
		Served: edge.Served{TLS: selfSigned()}})
	if err != nil {
		return err
	}
	if err := e.Open(ctx); err != nil {
		return err
	}
	fmt.Println("ready")
	in := bufio.NewReader(os.Stdin)
	for {
		var count, size int
		if _, err := fmt.Fscan(in, &count, &size); err != nil {
			return err
		}
		body := make([]byte, size)
		for range count {
			e.Publish(edge.Publication{Body: body})
		}
		fmt.Println("sent")
	}
}
