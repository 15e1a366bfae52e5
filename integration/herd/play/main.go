// Command play lets a herd of minions loose on a master, a node or a load balancer, and prints every second how it
// fares.
//
//	go run ./integration/herd/play -accept /etc/salt/pki/master/minions -address 127.0.0.1 -n 1000 -versions 3006,3008
//
// With -accept it first puts the key of all its minions into that directory of accepted keys: run it before the master
// starts, or where the master's saltclusterd sees it. Without it, an operator has to accept them (salt-key -A).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"saltclusterd/integration/herd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "play:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("play", flag.ContinueOnError)
	var cfg herd.Config
	fs.StringVar(&cfg.Host, "address", "127.0.0.1", "of the master, a node or the load balancer")
	fs.IntVar(&cfg.ReqPort, "port", 4506, "request port; the publish port is what the master says")
	fs.IntVar(&cfg.Minions, "n", 100, "how many minions")
	fs.StringVar(&cfg.Prefix, "prefix", "herd", "of their ids")
	fs.IntVar(&cfg.AtATime, "at-a-time", 32, "first sign-ins under way at a time")
	fs.DurationVar(&cfg.Think, "think", 0, "a job takes up to that long")
	fs.BoolVar(&cfg.Announce, "announce", true, "send start events")
	fs.BoolVar(&cfg.KeepRequests, "keep", true, "keep request connections, two for each minion in all")
	versions := fs.String("versions", "3008", "of the minions, in turn")
	accept := fs.String("accept", "", "directory of accepted keys to put theirs into")
	limit := fs.Duration("for", time.Hour, "how long")
	if err := fs.Parse(args); err != nil {
		return err
	}
	for _, v := range strings.Split(*versions, ",") {
		p, err := herd.ProfileOf(v)
		if err != nil {
			return err
		}
		cfg.Profiles = append(cfg.Profiles, p)
	}
	h, err := herd.New(cfg)
	if err != nil {
		return err
	}
	if *accept != "" {
		if err := herd.Accept(*accept, h.Key(), h.IDs()...); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	h.Open(ctx)
	watch(ctx, h)
	err = h.Close()
	return errors.Join(err, h.Stats().Err())
}

// watch prints a line a second until ctx ends.
func watch(ctx context.Context, h *herd.Herd) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s := h.Stats()
		cpu, _ := herd.CPU()
		fmt.Printf("subscribed %d of %d  signing in %d  signed in %d (p50 %s p99 %s)  failed %d  pending %d  unreadable %d  stale %d  "+
			"retries %d  returns lost %d  wrong %d  own CPU %s\n",
			s.Subscribed, s.Minions, s.SigningIn, s.SignIns, round(herd.Quantile(s.SignInTimes, 0.5)),
			round(herd.Quantile(s.SignInTimes, 0.99)),
			s.SignInFailed, s.Pended, s.Unreadable, s.Stale, s.Retries, s.ReturnsLost, len(s.Wrong), round(cpu))
	}
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
