// Command demo shows stock Salt masters of three versions answering as one behind HAProxy: it builds the lab, accepts
// the minions once, checks what every master gets from all of them, and keeps running until Ctrl-C so that one can look
// around with bin/lab.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"saltclusterd/integration/lab"
)

type options struct {
	once     bool
	loopback bool
	keep     bool
	shared   bool
	dir      string
}

func main() {
	var o options
	flag.BoolVar(&o.once, "once", false, "check, print the result and end; exit 0 only when everything answered")
	flag.BoolVar(&o.loopback, "loopback", false,
		"use loopback addresses instead of network namespaces (the only way without root)")
	flag.BoolVar(&o.keep, "keep", false, "keep the directory with logs and caches")
	flag.BoolVar(&o.shared, "shared", false,
		"keys, roots and jobs of all masters are on one share (cluster_isolated_filesystem: False)")
	flag.StringVar(&o.dir, "dir", "", "where to keep everything (default: a temporary directory)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	start := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("demo: %5.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	l, err := lab.New(ctx, lab.Options{Dir: o.dir, Loopback: o.loopback, Keep: o.keep, Logf: say})
	if err != nil {
		return err
	}
	defer func() {
		switch {
		case ctx.Err() != nil && err != nil:
			err = errors.New("interrupted")
		case err != nil:
			fmt.Fprintln(os.Stderr, l.Tails(25))
		}
		say("taking everything down")
		err = errors.Join(err, l.Close())
		if o.keep {
			say("logs and caches are in %s", l.Dir())
		}
	}()
	if !l.Namespaces() {
		say("no network namespaces: hosts are loopback addresses, faults are not available")
	}
	spec := lab.DefaultCluster()
	spec.Shared = o.shared
	c, err := l.NewCluster(ctx, spec)
	if err != nil {
		return err
	}
	if err := c.Up(ctx); err != nil {
		return err
	}
	if err := check(ctx, c); err != nil {
		return err
	}
	fmt.Printf("demo: %d masters, %d minions: all answered\n", len(c.Nodes), len(c.Minions))
	if o.once {
		return nil
	}
	return linger(ctx, c)
}
