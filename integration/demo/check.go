package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	{"test.ping", nil, pinged},
	{"pillar.items", nil, hasPillar},
	{"state.apply", nil, applied},
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

func pinged(_ *lab.Minion, ret any) error {
	if ret != true {
		return fmt.Errorf("answered %v", ret)
	}
	return nil
}

// hasPillar: the values are those rendered for this very minion. Salt 3008 shows masks at the command line; there applied
// looks at a file made from the pillar.
func hasPillar(m *lab.Minion, ret any) error {
	all, _ := ret.(map[string]any)
	switch demo := all["demo"].(type) {
	case map[string]any:
		if f := demo["for"]; f != m.ID && !masked(m, f) {
			return fmt.Errorf("pillar of %v", f)
		}
		if n, _ := demo["numbers"].([]any); len(n) != 3 && !masked(m, demo["numbers"]) {
			return fmt.Errorf("numbers are %v", demo["numbers"])
		}
		return nil
	default:
		if masked(m, demo) {
			return nil
		}
		return fmt.Errorf("pillar is %v", ret)
	}
}

func masked(m *lab.Minion, v any) bool {
	s, _ := v.(string)
	return strings.HasPrefix(m.Version, "3008") && s != "" && strings.Trim(s, "*") == ""
}

// statesInDemo is how many states roots/states/demo has.
const statesInDemo = 5

// applied: every state of the demo succeeded, and the files are what the master has and the pillar says.
func applied(m *lab.Minion, ret any) error {
	states, ok := ret.(map[string]any)
	if !ok {
		return fmt.Errorf("answered %v", ret)
	}
	if len(states) != statesInDemo {
		return fmt.Errorf("%d states instead of %d", len(states), statesInDemo)
	}
	for name, v := range states {
		if s, _ := v.(map[string]any); s["result"] != true {
			return fmt.Errorf("state %s: %v", name, s["comment"])
		}
	}
	motd, err := os.ReadFile(filepath.Join(m.StateDir(), "motd"))
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("This is %s, Salt %s, of a lab of three masters.\n", m.ID, m.Version); string(motd) != want {
		return fmt.Errorf("motd is %q, want %q", motd, want)
	}
	for _, name := range []string{"plain.txt", "big.bin", "tree/one.txt", "tree/sub/two.txt"} {
		if _, err := os.Stat(filepath.Join(m.StateDir(), name)); err != nil {
			return err
		}
	}
	return nil
}
