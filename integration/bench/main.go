// Command bench measures saltclusterd and prints markdown tables, as docs/contributing/benchmarks.md has them.
//
// Every part compares with something else in the same run on the same machine:
//
//   - echo, fanout: ports 4506 and 4505 against libzmq.
//   - transports: Salt's transports tcp and ws, and tcp inside of TLS, on both ports, against zeromq on the same ports.
//   - tls: tcp inside of TLS against plain tcp, with 5,000 connections, and handshakes against crypto/tls alone.
//   - signin: CPU per `_auth` of an accepted key, against a stock master alone.
//   - forward: CPU and latency of requests that saltclusterd forwards, against asking the master directly: stock
//     masters, and at 1,000 requests/s a stand-in, because no stock master answers that many.
//   - memory: resident memory with idle subscribers, against a process without any.
//   - idle: wake-ups and CPU of three idle nodes with six minions, against the stock masters beside them.
//   - herd: test.ping of a thousand played minions (integration/herd), against a stock master alone.
//   - roots: trees and edits between nodes, against rsync.
//   - files: CPU per chunk, hash and list of files, against a stock master alone.
//   - keys: how soon a changed or rejected key has its effect, against a stock master alone.
//
// CPU is that of whole process trees, ended children included. Sides take turns in every round, and ratios are formed
// within a round. Figures are minimum/median/maximum over the rounds. Processes and sockets are in an
// integration/lab.
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

// parts in the order in which they run.
var parts = []struct {
	name string
	do   func(*bench, context.Context) error
}{
	{"echo", (*bench).echo},
	{"fanout", (*bench).fanout},
	{"transports", (*bench).transports},
	{"tls", (*bench).tls},
	{"signin", steadily((*bench).signin)},
	{"forward", (*bench).forward},
	{"memory", (*bench).memory},
	{"idle", (*bench).idle},
	{"herd", (*bench).herds},
	{"roots", (*bench).roots},
	{"files", steadily((*bench).files)},
	{"keys", (*bench).keys},
}

// bench is one run.
type bench struct {
	what   []string
	rounds int
	quick  bool
	keep   bool
	bin    string
	herd   int // minions

	run  string // when and where
	say  func(format string, args ...any)
	labs []*lab.Lab // closed, directories not removed yet
}

// pick returns the size of a full run, or of a quick one.
func pick[T any](b *bench, full, quick T) T {
	if b.quick {
		return quick
	}
	return full
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" { // the program itself as the server of echo and fanout
		fmt.Fprintln(os.Stderr, serve(os.Args[2:]))
		os.Exit(1)
	}
	b, err := parse(os.Args[1:])
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		err = b.measure(ctx)
		stop()
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*bench, error) {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	b := &bench{}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	what := fs.String("what", strings.Join(names, ","), "what to measure")
	fs.IntVar(&b.rounds, "n", 0, "rounds, in each of which all sides take their turn (default 5, quick 2)")
	fs.BoolVar(&b.quick, "quick", false, "small and short: does it work, roughly how much; not for docs/contributing/benchmarks.md")
	fs.BoolVar(&b.keep, "keep", false, "keep the lab's directory with logs")
	fs.StringVar(&b.bin, "bin", "", "where saltclusterd and saltclusterctl are (default: bin/ of the module)")
	fs.IntVar(&b.herd, "herd", 0, "minions of the part herd (default 1000, quick 200)")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	b.what = strings.Split(*what, ",")
	for _, w := range b.what {
		if !slices.Contains(names, w) {
			return nil, fmt.Errorf("invalid -what %q: want some of %s", w, strings.Join(names, ", "))
		}
	}
	if b.rounds == 0 {
		b.rounds = pick(b, 5, 2)
	}
	if b.herd == 0 {
		b.herd = pick(b, 1000, 200)
	}
	return b, nil
}

func (b *bench) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Hour)
	defer cancel()
	start := time.Now()
	b.run = header(b.quick)
	fmt.Println("Figures of the form 1/2/3 are the minimum, median and maximum of the rounds.")
	b.say = func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "bench: %5.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	var failed []error
	for _, p := range parts {
		if !slices.Contains(b.what, p.name) || ctx.Err() != nil {
			continue
		}
		if err := p.do(b, ctx); err != nil { // the other parts are measured nonetheless
			failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
			b.say("%v", failed[len(failed)-1])
		}
	}
	for _, l := range b.labs {
		failed = append(failed, l.Remove())
	}
	return errors.Join(failed...)
}

// inLab runs f in a lab of its own. The directory stays until the run ends: ext4 without a journal does not reuse the
// inode of a removed file for minutes and looks past it with each new file, which would burden the next part.
func (b *bench) inLab(ctx context.Context, f func(context.Context, *lab.Lab) error) error {
	l, err := lab.New(ctx, lab.Options{Bin: b.bin, Keep: b.keep, Linger: true, Logf: b.say})
	if err != nil {
		return err
	}
	if err = f(ctx, l); err != nil {
		fmt.Fprintln(os.Stderr, l.Tails(15))
	}
	b.labs = append(b.labs, l)
	return errors.Join(err, l.Close())
}
