// Command scale prints what integration/scale foretells, as tables.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"saltclusterd/integration/scale"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// options of a run.
type options struct {
	what           []string
	nodes, minions []int
	site           scale.Site
	noticed        time.Duration
	versions       []int
	keys           int
	costs          *scale.Costs
}

// parts in the order in which they are printed.
var parts = []struct {
	name  string
	print func(o *options, w io.Writer)
}{
	{"job", jobs}, {"storm", storms}, {"keys", keys}, {"network", network}, {"needs", needs}, {"costs", costs},
}

func run(args []string, w io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if slices.Contains(o.what, p.name) {
			p.print(o, w)
		}
	}
	return nil
}

func parse(args []string) (*options, error) {
	o := &options{costs: scale.MeasuredCosts()}
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	fs := flag.NewFlagSet("scale", flag.ContinueOnError)
	what := fs.String("what", "job,storm,keys", "what to foretell: "+strings.Join(names, ", "))
	nodes := fs.String("nodes", "3", "numbers of nodes, as 3,5,10")
	minions := fs.String("minions", "1000,5000,20000,50000,100000", "numbers of minions")
	versions := fs.String("versions", "3006,3007,3008", "storm: the minions' versions, in turn")
	s := &o.site
	fs.IntVar(&s.Cores, "cores", 4, "of each node")
	fs.IntVar(&s.SaltMajor, "salt", 3006, "version of the masters")
	fs.IntVar(&s.Replicas, "replicas", 3, "cluster_job_replicas")
	fs.IntVar(&s.Payload, "return", 0, "bytes of a return beyond those of test.ping")
	fs.IntVar(&s.ProxyThreads, "haproxy", 4, "threads of the load balancer")
	fs.DurationVar(&s.RTT, "rtt", 300*time.Microsecond, "between nodes")
	fs.Float64Var(&s.Bandwidth, "bandwidth", 10e9, "of each network card, bits per second")
	fs.DurationVar(&s.Think[0], "least", 300*time.Millisecond, "job: a minion needs at least so long for it")
	fs.DurationVar(&s.Think[1], "most", 1300*time.Millisecond, "job: and at most so long")
	fs.DurationVar(&o.costs.Fsync, "fsync", o.costs.Fsync, "of a disk")
	fs.Uint64Var(&s.Seed, "seed", 1, "of everything that is random")
	fs.DurationVar(&o.noticed, "noticed", 0,
		"storm: until the load balancer knows; 0 is a killed process, 2s to 6s a lost machine")
	fs.IntVar(&o.keys, "keys", 1, "keys: accepted at once")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	o.what = strings.Split(*what, ",")
	for _, name := range o.what {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("-what: %q is none of %s", name, strings.Join(names, ", "))
		}
	}
	var err error
	for _, list := range []struct {
		flag, text string
		to         *[]int
		least      int
	}{{"nodes", *nodes, &o.nodes, 2}, {"minions", *minions, &o.minions, 1}, {"versions", *versions, &o.versions, 3006}} {
		if *list.to, err = numbers(list.text, list.least); err != nil {
			return nil, fmt.Errorf("-%s: %w", list.flag, err)
		}
	}
	o.costs.RaftStore = 2 * o.costs.Fsync
	return o, nil
}

func numbers(text string, least int) (out []int, err error) {
	for f := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(f)
		if err != nil || n < least {
			return nil, fmt.Errorf("%q is not a whole number of %d or more", f, least)
		}
		out = append(out, n)
	}
	return out, nil
}

// each calls visit for every site.
func (o *options) each(visit func(s scale.Site)) {
	for _, n := range o.nodes {
		for _, m := range o.minions {
			s := o.site
			s.Nodes, s.Minions = n, m
			visit(s)
		}
	}
}

func head(w io.Writer, title string, columns ...string) {
	fmt.Fprintf(w, "\n## %s\n\n| %s |\n|%s\n", title, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

func row(w io.Writer, cells ...any) {
	for _, c := range cells {
		switch v := c.(type) {
		case time.Duration:
			fmt.Fprintf(w, "| %.2f ", v.Seconds())
		case float64:
			fmt.Fprintf(w, "| %.1f ", v)
		default:
			fmt.Fprintf(w, "| %v ", v)
		}
	}
	fmt.Fprintln(w, "|")
}

func jobs(o *options, w io.Writer) {
	head(w, "A job for all minions, s from the first minion that has it", "nodes", "minions", "the last has it",
		"last return acknowledged",
		"whole in the job cache", "and on the replicas", "last event on the bus", "returns sent again", "given up",
		"kept elsewhere",
		"CPU s publisher", "CPU s another node", "CPU s HAProxy")
	o.each(func(s scale.Site) {
		s.Slower = scale.JobFactors
		j := scale.NewWorld(s, o.costs).Job()
		row(w, s.Nodes, s.Minions, j.LastHeard, j.LastEnd, j.Cached, slices.Max(j.Copied), j.LastEvent, j.Retries, j.Lost,
			j.Kept,
			j.CPU["saltclusterd"], j.CPU["saltclusterd, others"]/time.Duration(s.Nodes-1), j.CPU["haproxy"])
	})
}

func storms(o *options, w io.Writer) {
	head(w, "A node dies, s until its minions are served again", "nodes", "minions", "lost their node", "half are served",
		"all are", "sign-ins",
		"tries", "gave up and began anew", "slowest sign-in", "CPU s all saltclusterd")
	o.each(func(s scale.Site) {
		st := scale.NewWorld(s, o.costs).Storm(o.noticed, o.versions)
		row(w, s.Nodes, s.Minions, st.Lost, st.Half, st.LastServed, st.SignIns, st.Tries, st.Failed, st.Slowest,
			st.CPU["saltclusterd"]+st.CPU["saltclusterd, others"])
	})
}

// edits is how often keys are accepted.
const edits = 100

func keys(o *options, w io.Writer) {
	head(w, fmt.Sprintf("Keys are accepted on one node, %d at once: ms until all have them", o.keys), "nodes", "median",
		"99 %", "most")
	for _, n := range o.nodes {
		s := o.site
		s.Nodes = n
		k := scale.NewWorld(s, o.costs).Keys(edits, o.keys)
		ms := func(q float64) float64 { return k.Quantile(q).Seconds() * 1000 }
		row(w, n, ms(0.5), ms(0.99), ms(1))
	}
}

func network(o *options, w io.Writer) {
	head(w, "Bytes of one job over each node's card, MB", "nodes", "minions", "node", "sent", "got")
	o.each(func(s scale.Site) {
		j := scale.NewWorld(s, o.costs).Job()
		for i, name := range []string{"publisher", "another"} {
			row(w, s.Nodes, s.Minions, name, float64(j.Networks[i].Sent)/1e6, float64(j.Networks[i].Got)/1e6)
		}
	})
}

func needs(o *options, w io.Writer) {
	head(w, "What a node needs, one of them being away, and the load balancer", "nodes", "minions",
		"connections on each port", "with a node away",
		"open files", "MiB of saltclusterd, idle", "HAProxy's connections", "its open files", "its MiB")
	o.each(func(s scale.Site) {
		n := s.Needs(o.costs)
		row(w, s.Nodes, s.Minions, n.Connections, n.Worst, n.Files, n.Memory>>20, n.ProxyConnections, n.ProxyFiles,
			n.ProxyMemory>>20)
	})
}

func costs(o *options, w io.Writer) { fmt.Fprint(w, "\n## Costs\n\n", o.costs.Table()) }
