// Command edgebench measures sidecar/edge against libzmq, paired in one run
// on the same machine: echo through the request port with libzmq REQ clients,
// and bursts through the publish port to libzmq SUB clients. Every server is
// a process of its own. The load generator is C and is built with gcc and
// libzmq's headers (Debian: libzmq3-dev).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
)

type options struct {
	what    string
	clients []int
	sizes   []int
	rounds  int
	seconds float64
	bytes   int // per burst and subscriber
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "edgebench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "serve" {
		return serve(args[1:])
	}
	fs := flag.NewFlagSet("edgebench", flag.ContinueOnError)
	what := fs.String("what", "echo,fanout,stalled", "what to measure")
	clients := fs.String("clients", "1000,5000", "numbers of clients")
	sizes := fs.String("sizes", "1024,65536", "publication sizes in bytes")
	var o options
	fs.IntVar(&o.rounds, "n", 5, "rounds, each measuring both servers")
	fs.Float64Var(&o.seconds, "seconds", 2, "length of one echo measurement")
	fs.IntVar(&o.bytes, "burst", 100<<10, "bytes of a burst per subscriber (at least 4 publications)")
	if err := fs.Parse(args); err != nil {
		return err
	}
	o.what = *what
	var err error
	if o.clients, err = numbers(*clients); err != nil {
		return err
	}
	if o.sizes, err = numbers(*sizes); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	load, clean, err := build(ctx)
	if err != nil {
		return err
	}
	defer clean()
	b := bench{ctx: ctx, load: load, o: o}
	return b.all()
}

func numbers(list string) (out []int, err error) {
	for _, f := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("not a number: %q", f)
		}
		out = append(out, n)
	}
	return out, nil
}
