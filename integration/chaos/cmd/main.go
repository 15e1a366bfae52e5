// Command cmd disturbs a cluster of the lab at random for a while and judges what happened; "make chaos" runs it. It
// exits with 1 when the cluster did what it must not do, and prints the history of that, and with 2 when it could not
// be tried.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"saltclusterd/integration/chaos"
	"saltclusterd/integration/history"
	"saltclusterd/integration/lab"
)

type options struct {
	cfg  chaos.Config
	only string
	out  string
	keep bool
	list bool
}

func main() {
	o := options{cfg: chaos.Default()}
	flag.Uint64Var(&o.cfg.Seed, "seed", uint64(time.Now().Unix()),
		"what the faults, their order and their times follow from")
	flag.DurationVar(&o.cfg.For, "for", o.cfg.For, "how long faults are begun")
	flag.DurationVar(&o.cfg.Hold, "hold", 0, "how long each fault is held; 0: as long as its kind may be, at random")
	flag.DurationVar(&o.cfg.Every, "every", o.cfg.Every, "time between jobs")
	flag.BoolVar(&o.cfg.Monitor, "monitor", false, "stock minions have zmq_monitor, their default from 3007 on")
	flag.DurationVar(&o.cfg.KeyPause, "key-pause", o.cfg.KeyPause,
		"time between decisions about keys, each second of which makes all minions sign in anew")
	flag.IntVar(&o.cfg.Nodes, "nodes", o.cfg.Nodes, "nodes of the cluster: 3 or 5")
	flag.Func("stock",
		"versions of the stock minions behind HAProxy, separated by commas; a version may be there several times", func(s string) error {
			o.cfg.Stock = strings.Split(s, ",")
			return nil
		})
	flag.Func("daemon", "an option of each saltclusterd, as in log_level=debug; may be given several times", func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("no = in it")
		}
		if o.cfg.Daemon == nil {
			o.cfg.Daemon = lab.Settings{}
		}
		o.cfg.Daemon[name] = value
		return nil
	})
	flag.StringVar(&o.only, "only", "", "names of faults, separated by commas; empty: all")
	flag.StringVar(&o.out, "out", "",
		"directory for the whole history when something was wrong; empty: the temporary directory")
	flag.BoolVar(&o.keep, "keep", false, "keep the lab's directory with all logs")
	flag.BoolVar(&o.list, "list", false, "name the faults and end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, o))
}

func run(ctx context.Context, o options) int {
	if o.list {
		for _, k := range chaos.Kinds() {
			fmt.Println(k.Name)
		}
		return 0
	}
	if o.only != "" {
		o.cfg.Only = strings.Split(o.only, ",")
	}
	logf := func(format string, args ...any) { fmt.Printf(time.Now().Format("15:04:05 ")+format+"\n", args...) }
	l, err := lab.New(ctx, lab.Options{Logf: logf, Keep: o.keep})
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	defer func() {
		if err := l.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "chaos:", err)
		}
		if o.keep {
			fmt.Println("kept:", l.Dir())
		}
	}()
	fmt.Printf("seed %d, %d nodes, for %s\n", o.cfg.Seed, o.cfg.Nodes, o.cfg.For)
	h, found, err := chaos.Run(ctx, l, o.cfg)
	if h == nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	return report(o, l, h, found, err)
}

func report(o options, l *lab.Lab, h *history.History, found []history.Violation, err error) int {
	fmt.Println(h.Summary())
	if err := history.PrintTally(os.Stdout, history.TallyKinds(h, history.DefaultOptions())); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	if err == nil && len(found) == 0 {
		fmt.Println("nothing was lost, nothing happened twice, everything recovered")
		return 0
	}
	if err != nil && !errors.Is(err, chaos.ErrNotRecovered) {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		fmt.Println(l.Tails(20))
		for _, v := range found {
			fmt.Println("VIOLATION", v)
		}
		return 2
	}
	fmt.Println()
	h.Print(os.Stdout, found...)
	fmt.Println()
	if err != nil {
		fmt.Println("VIOLATION", err)
		fmt.Println(l.Tails(20))
	}
	for _, v := range found {
		fmt.Println("VIOLATION", v)
	}
	if path, err := save(o.out, h); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	} else {
		fmt.Println("the whole history:", path)
	}
	fmt.Printf("again: make chaos ARGS=\"-seed %d -for %s -nodes %d\"\n", o.cfg.Seed, o.cfg.For, o.cfg.Nodes)
	return 1
}

func save(dir string, h *history.History) (path string, err error) {
	if dir == "" {
		dir = os.TempDir()
	}
	path = filepath.Join(dir, fmt.Sprintf("chaos-%d.json", h.Seed))
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(h.WriteJSON(f), f.Close())
}
