package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"saltclusterd/integration/lab"
)

// probe is one command which every master publishes, and what each minion must answer.
type probe struct {
	name   string
	args   []string
	answer func(m *lab.Minion, ret any) error
}

var probes = []probe{
	{"test.ping", nil, (*lab.Minion).CheckPing},
	{"pillar.items", nil, (*lab.Minion).CheckPillar},
	{"state.apply", nil, (*lab.Minion).CheckApplied},
}

// outcome is one cell of the table.
type outcome struct {
	answered int
	took     time.Duration
	err      error
}

// check runs every probe from every master and prints a table; the error joins everything that was not as it must be.
func check(ctx context.Context, c *lab.Cluster) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 3, ' ', 0)
	fmt.Fprint(w, "\nFROM\tSALT\tADDRESS")
	for _, p := range probes {
		fmt.Fprintf(w, "\t%s", strings.ToUpper(p.name))
	}
	var errs []error
	for _, n := range c.Nodes {
		fmt.Fprintf(w, "\n%s\t%s\t%s", n.Name, n.Master.Version, n.Addr)
		for _, p := range probes {
			c.Lab.Logf("%s: salt '*' %s", n.Name, p.name)
			o := p.run(ctx, c, n)
			fmt.Fprintf(w, "\t%d/%d in %.1fs", o.answered, len(c.Minions), o.took.Seconds())
			if o.err != nil {
				fmt.Fprint(w, " FAILED")
				errs = append(errs, fmt.Errorf("%s: salt '*' %s: %w", n.Name, p.name, o.err))
			}
		}
	}
	fmt.Fprint(w, "\n\n")
	w.Flush()
	return errors.Join(errs...)
}

func (p probe) run(ctx context.Context, c *lab.Cluster, n *lab.Node) outcome {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	start := time.Now()
	got, err := n.Master.Pub(ctx, "*", p.name, p.args...)
	o := outcome{took: time.Since(start), err: err}
	if err != nil {
		return o
	}
	errs := []error{lab.AnsweredBy(got, c.IDs()...)}
	for _, m := range c.Minions {
		ret, ok := got[m.ID]
		if !ok {
			continue
		}
		if err := p.answer(m, ret); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.ID, err))
			continue
		}
		o.answered++
	}
	o.err = errors.Join(errs...)
	return o
}
