package parity

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"saltclusterd/integration/lab"
)

// Step is one command of the script.
type Step struct {
	Name string   // unique
	On   string   // a minion's id; empty: the master
	Argv []string // a Salt tool and its arguments; {name} is replaced by what an earlier step has kept under that name

	Keep string // keep the first match of Find in standard output under this name
	Find *regexp.Regexp
	// repeat on every master until standard output has this text (what belongs to no job is kept by one of them, after a
	// moment)
	Until string
	Code  bool // only the exit code and whether something was printed are compared
	// the order of lines says nothing, nor do braces that stand alone (batches print as answers come)
	Lines   bool
	Drop    []*regexp.Regexp // lines that match are left out of the comparison
	More    bool             // left out of the short script
	Before  func(ctx context.Context, s *Subject) error
	After   func(ctx context.Context, s *Subject) error
	Timeout time.Duration // 0: two minutes
}

// Subject is what the script runs against: a master and minions.
type Subject struct {
	Master  *lab.Master   // that publishes
	Masters []*lab.Master // all
	Minions []*lab.Minion
	kept    map[string]string
}

// NewSubject of a bare master.
func NewSubject(b *lab.Bare) *Subject {
	return &Subject{Master: b.Master, Masters: []*lab.Master{b.Master}, Minions: b.Minions, kept: map[string]string{}}
}

// NodeSubject of a cluster, published to by one of its nodes.
func NodeSubject(c *lab.Cluster, n *lab.Node) *Subject {
	s := &Subject{Master: n.Master, Minions: c.Minions, kept: map[string]string{}}
	for _, o := range c.Nodes {
		s.Masters = append(s.Masters, o.Master)
	}
	return s
}

// Minion of that id.
func (s *Subject) Minion(id string) (*lab.Minion, error) {
	i := slices.IndexFunc(s.Minions, func(m *lab.Minion) bool { return m.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("no minion %s", id)
	}
	return s.Minions[i], nil
}

// Observation is what one step printed, made comparable.
type Observation struct {
	Step   string
	Code   int
	Stdout string // normalised
	Stderr string // normalised
	Took   time.Duration
	Failed error // the step could not be run at all
}

// Observe runs one step.
func (s *Subject) Observe(ctx context.Context, st Step) Observation {
	if st.Timeout == 0 {
		st.Timeout = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, st.Timeout)
	defer cancel()
	o := Observation{Step: st.Name}
	var res lab.Result
	if st.Before != nil {
		if o.Failed = st.Before(ctx, s); o.Failed != nil {
			return o
		}
	}
	res, o.Failed = s.run(ctx, st)
	if st.After != nil {
		// Not under the step's own deadline: what Before has broken must be mended.
		if err := st.After(context.WithoutCancel(ctx), s); err != nil && o.Failed == nil {
			o.Failed = err
		}
	}
	if o.Failed != nil {
		return o
	}
	o.Code, o.Took = res.Code, res.Took
	if st.Code {
		o.Stdout = fmt.Sprintf("printed: %t", strings.TrimSpace(res.Stdout) != "")
		return o
	}
	n := normaliser{drop: st.Drop, unordered: st.Lines, hosts: []string{s.Master.Host().Name},
		dirs: []string{s.Master.Host().Lab().Dir(), lab.DefaultVenvs()}}
	o.Stdout, o.Stderr = n.output(res.Stdout), n.errors(res.Stderr)
	return o
}

func (s *Subject) run(ctx context.Context, st Step) (res lab.Result, err error) {
	argv := make([]string, len(st.Argv))
	for i, a := range st.Argv {
		for name, value := range s.kept {
			a = strings.ReplaceAll(a, "{"+name+"}", value)
		}
		argv[i] = a
	}
	if st.Until != "" {
		return s.find(ctx, st.Until, argv)
	}
	tools := &s.Master.Salt
	if st.On != "" {
		m, err := s.Minion(st.On)
		if err != nil {
			return res, err
		}
		tools = &m.Salt
	}
	if res, err = tools.Run(ctx, argv[0], argv[1:]...); err != nil {
		return res, err
	}
	if st.Keep != "" {
		m := st.Find.FindString(res.Stdout)
		if m == "" {
			return res, fmt.Errorf("nothing to keep as %s in: %s", st.Keep, res.Output())
		}
		s.kept[st.Keep] = m
	}
	return res, nil
}

// Diff describes how two observations of a step differ, in lines; empty: not at all.
func Diff(bare, cluster Observation) string {
	var b strings.Builder
	line := func(what, x, y string) {
		if x != y {
			fmt.Fprintf(&b, "%s (- bare, + cluster):\n%s\n", what, cmp.Diff(strings.Split(x, "\n"), strings.Split(y, "\n")))
		}
	}
	line("could not be run", fmt.Sprint(bare.Failed), fmt.Sprint(cluster.Failed))
	line("exit code", fmt.Sprint(bare.Code), fmt.Sprint(cluster.Code))
	line("stdout", bare.Stdout, cluster.Stdout)
	line("stderr", bare.Stderr, cluster.Stderr)
	return b.String()
}

// find runs a command on one master after the other, again and again, until one prints the text.
func (s *Subject) find(ctx context.Context, text string, argv []string) (res lab.Result, err error) {
	err = lab.Eventually(ctx, time.Minute, text, func(ctx context.Context) error {
		for _, m := range s.Masters {
			if res, err = m.Run(ctx, argv[0], argv[1:]...); err != nil {
				return err
			}
			if strings.Contains(res.Stdout, text) {
				return nil
			}
		}
		return fmt.Errorf("on none of %d masters", len(s.Masters))
	})
	return res, err
}
