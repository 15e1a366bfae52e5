// Command cmd has a hostile minion talk to a cluster of the lab and judges what came of it; "make fuzz-live" runs it.
// It exits with 1 when an invariant did not hold, and with 2 when it could not be tried.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"saltclusterd/integration/hostile"
	"saltclusterd/integration/lab"
)

func main() {
	cfg := hostile.Default()
	var skip, off string
	var keep, dry bool
	var seeds uint64
	flag.Uint64Var(&cfg.Seed, "seed", uint64(time.Now().Unix()), "what all requests follow from")
	flag.Uint64Var(&seeds, "seeds", 1, "how many seeds, from that on, one after the other in one cluster")
	flag.DurationVar(&cfg.For, "for", cfg.For, "how long requests are made")
	flag.IntVar(&cfg.Only, "only", -1, "the number of the one request that is made, over and over; -1: all")
	flag.IntVar(&cfg.Rate, "rate", cfg.Rate, "requests per second at most")
	flag.StringVar(&skip, "skip", "",
		"invariants that are counted and not judged, separated by commas: "+strings.Join(hostile.Invariants, " "))
	flag.StringVar(&off, "off", "",
		"rules of the wall that are switched off, separated by commas: then something has to be found")
	flag.BoolVar(&keep, "keep", false, "keep the lab's directory with all logs")
	flag.BoolVar(&dry, "list", false, "print the first hundred requests (or the one of -only) and end")
	flag.Parse()
	if skip != "" {
		cfg.Skip = strings.Split(skip, ",")
	}
	if dry {
		for _, line := range hostile.List(cfg.Seed, cfg.Only) {
			fmt.Println(line)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, cfg, max(seeds, 1), off, keep)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, cfg hostile.Config, seeds uint64, off string, keep bool) int {
	cfg.Revoke = true
	logf := func(format string, args ...any) { fmt.Printf(time.Now().Format("15:04:05 ")+format+"\n", args...) }
	cfg.Logf = logf
	l, err := lab.New(ctx, lab.Options{Logf: logf, Keep: keep})
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		return 2
	}
	defer func() {
		if err := l.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "hostile:", err)
		}
		if keep {
			fmt.Println("kept:", l.Dir())
		}
	}()
	c, err := target(ctx, l, off)
	code := 0
	for range seeds {
		if err != nil {
			break
		}
		l.Logf("seed %d, for %s", cfg.Seed, cfg.For)
		var report *hostile.Report
		if report, err = hostile.Run(ctx, c, cfg); err == nil {
			code = max(code, tell(report, cfg))
			cfg.Seed++
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		fmt.Println(l.Tails(20))
		return 2
	}
	return code
}

// tell prints what came of a seed and returns what to exit with.
func tell(report *hostile.Report, cfg hostile.Config) int {
	fmt.Println(report.Summary())
	for _, v := range report.Violations {
		fmt.Println("VIOLATION", v)
	}
	if len(report.Violations) > 0 {
		fmt.Printf("again: make fuzz-live ARGS=\"-seed %d -for %s\"; one request: -only NUMBER\n", cfg.Seed, cfg.For)
		return 1
	}
	fmt.Println("every invariant held")
	return 0
}

// target starts the cluster that is attacked.
func target(ctx context.Context, l *lab.Lab, off string) (*lab.Cluster, error) {
	spec := lab.DefaultCluster()
	spec.Minions = lab.Versions
	// paths are looked at only where files may come
	spec.MasterSettings = lab.Settings{"timeout": 5, "gather_job_timeout": 15, "file_recv": true}
	if off != "" {
		modes := map[string]any{}
		for _, rule := range strings.Split(off, ",") {
			modes[rule] = "off"
		}
		spec.DaemonSettings = lab.Settings{"cluster_wall": modes}
	}
	c, err := l.NewCluster(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := c.Up(ctx); err != nil {
		return nil, err
	}
	return c, nil
}
