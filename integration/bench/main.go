package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"saltclusterd/integration/lab"
)

// options of a run.
type options struct {
	what     []string
	rounds   int
	quick    bool
	write    bool
	keep     bool
	loopback bool
	bin      string
	herdSize int
	flood    time.Duration
	save     string
	against  string
	resting  bool
}

// sections in the order in which they run; the first three are edgebench's.
var sections = []string{"echo", "fanout", "stalled", "signin", "cluster", "forward", "flood", "upgrade", "memory", "herd", "req", "events", "mines", "replicas", "failover", "join", "roots", "files", "pillar", "keys"}

// extra sections run only when they are asked for.
var extra = []string{"model", "profile"}

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		ctx, cancel := context.WithTimeout(ctx, o.size().limit)
		err = run(ctx, o)
		cancel()
		stop()
	}
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	what := fs.String("what", strings.Join(sections, ","), "what to measure")
	fs.IntVar(&o.rounds, "n", 0, "rounds, in each of which all sides take their turn (default 5, quick 2)")
	fs.BoolVar(&o.quick, "quick", false, "small and short: does it work, roughly how much; not for docs/performance.md")
	fs.BoolVar(&o.write, "write", false, "put the tables into docs/performance.md")
	fs.BoolVar(&o.keep, "keep", false, "keep the lab's directory with logs")
	fs.BoolVar(&o.loopback, "loopback", false, "use loopback addresses instead of network namespaces")
	fs.StringVar(&o.bin, "bin", "", "where saltclusterd and saltclusterctl are (default: bin/ of the module)")
	fs.IntVar(&o.herdSize, "herd", 0, "minions of the parts herd, replicas and failover (default 1000, quick 200); with 5000 a bare master of each version is given half an hour")
	fs.BoolVar(&o.resting, "resting", false, "let processors rest between requests also where CPU per request is measured: their clock falls then, for both sides not alike")
	fs.DurationVar(&o.flood, "flood-for", 0, "how long a flood goes on in one piece (default 30s, quick 2s)")
	fs.StringVar(&o.save, "save", "", "model: write what was measured to this file")
	fs.StringVar(&o.against, "against", "", "model: measure nothing, take what an earlier run has saved; with -save the large herds are measured once more and added")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	for _, w := range strings.Split(*what, ",") {
		if all := append(slices.Clone(sections), extra...); !slices.Contains(all, w) {
			return o, fmt.Errorf("-what: %q is none of %s", w, strings.Join(all, ", "))
		}
		o.what = append(o.what, w)
	}
	return o, nil
}

func (o options) wants(what ...string) bool {
	return slices.ContainsFunc(what, func(w string) bool { return slices.Contains(o.what, w) })
}

func run(ctx context.Context, o options) error {
	start := time.Now()
	b := &bench{options: o, sizes: o.size(), out: newReport(o)}
	b.say = func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "bench: %5.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	var failed []error
	for _, part := range []struct {
		names []string
		run   func(context.Context) error
	}{
		{sections[:3], b.edge},
		{[]string{"signin", "forward"}, b.steadily(b.realMasters)},
		{[]string{"cluster"}, b.steadily(b.signInsOfCluster)},
		{[]string{"forward", "flood", "upgrade", "memory"}, b.standIn},
		{[]string{"herd"}, b.herds},
		{[]string{"req"}, b.steadily(b.reqs)},
		{[]string{"events"}, b.steadily(b.events)},
		{[]string{"mines"}, b.steadily(b.mines)},
		{[]string{"replicas"}, b.replicas},
		{[]string{"failover"}, b.failover},
		{[]string{"join"}, b.joins},
		{[]string{"roots"}, b.roots},
		{[]string{"files"}, b.steadily(b.files)},
		{[]string{"pillar"}, b.steadily(b.pillars)},
		{[]string{"keys"}, b.keys},
		{extra[:1], b.model},
		{extra[1:], b.profiles},
	} {
		if !o.wants(part.names...) {
			continue
		}
		// What is there is printed and kept, and the others are measured, when one part cannot be.
		if err := part.run(ctx); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", strings.Join(part.names, ", "), err))
			b.say("%v", failed[len(failed)-1])
		}
		if ctx.Err() != nil {
			break
		}
	}
	b.say("done")
	for _, l := range b.labs {
		failed = append(failed, l.Remove())
	}
	if o.write {
		failed = append(failed, b.out.write())
	}
	return errors.Join(failed...)
}

// bench is one run.
type bench struct {
	options
	sizes
	out *report
	say func(format string, args ...any)

	labs []*lab.Lab // that are closed, but for their directories
}

// inLab runs f in a lab of its own, whose directory stays until the run ends: ext4 gives the number of a file that was removed to no other one for
// minutes, and looks past all of them whenever a file is made, so that what one side leaves behind would make the next one's files dearer.
func (b *bench) inLab(ctx context.Context, f func(context.Context, *lab.Lab) error) error {
	l, err := lab.New(ctx, lab.Options{Bin: b.bin, Keep: b.keep, Linger: true, Loopback: b.loopback, Logf: b.say})
	if err != nil {
		return err
	}
	err = f(ctx, l)
	if err != nil {
		fmt.Fprintln(os.Stderr, l.Tails(15))
	}
	b.labs = append(b.labs, l)
	return errors.Join(err, l.Close())
}
