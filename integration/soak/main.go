// Command soak loads a cluster of the lab for an hour: jobs once a second, a minion that floods, readers that do not
// read, a slow peer, a slow master. It fails when a saltclusterd needs more memory than its ceiling, or anything is
// lost. "make soak" runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"saltclusterd/integration/chaos"
	"saltclusterd/integration/lab"
)

func main() {
	c := chaos.DefaultSoak()
	flag.DurationVar(&c.For, "for", c.For, "how long the load lasts")
	flag.IntVar(&c.Ceiling, "ceiling", c.Ceiling, "MiB that no saltclusterd may exceed")
	flag.IntVar(&c.Rate, "rate", c.Rate, "requests a second of the flooding minion")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c chaos.SoakConfig) error {
	logf := func(format string, args ...any) { fmt.Printf(time.Now().Format("15:04:05 ")+format+"\n", args...) }
	l, err := lab.New(ctx, lab.Options{Logf: logf})
	if err != nil {
		return err
	}
	defer l.Close()
	r, err := chaos.Soak(ctx, l, c)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, l.Tails(20))
	}
	r.Print(os.Stdout)
	if len(r.Violations) > 0 {
		return fmt.Errorf("%d violations\n%s", len(r.Violations), l.Tails(200))
	}
	return nil
}
