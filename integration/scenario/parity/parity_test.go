//go:build integration

package parity

import (
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// wanted picks steps by name.
var wanted = regexp.MustCompile(os.Getenv("SALTCLUSTER_PARITY_STEPS"))

// script is the whole table with SALTCLUSTER_PARITY=full, which takes half an hour; else the part that covers every
// kind of request.
func script() []Step {
	full := os.Getenv("SALTCLUSTER_PARITY") == "full"
	return slices.DeleteFunc(Script(), func(s Step) bool {
		return s.More && !full || !wanted.MatchString(s.Name)
	})
}

// The cluster, publishing from each of its masters, answers as a bare master of that version does: as one has answered when
// testdata/bare.json was written, or else as one answers now. With SALTCLUSTER_LONG=1 a bare master is always asked, at the
// same time.
func TestClusterEqualsBare(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: lab.Versions, Minions: lab.Versions, MasterSettings: MasterSettings(),
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(t.Context()))
	for _, n := range c.Nodes {
		t.Run(n.Master.Version, func(t *testing.T) {
			askBare := func(t *testing.T) []Observation { return observeBare(t, n.Master.Version) }
			askCluster := func(t *testing.T) []Observation { return observe(t, NodeSubject(c, n)) }
			if os.Getenv("SALTCLUSTER_LONG") != "" {
				bare, cluster := both(t, askBare, askCluster)
				compare(t, bare, cluster)
				if *update && !t.Failed() {
					record(t, n.Master.Version, bare)
				}
				return
			}
			cluster := askCluster(t)
			if steps := unrecorded(t, n.Master.Version, cluster); len(steps) > 0 {
				t.Logf("a bare master is asked, for testdata/bare.json does not have this of %q", steps)
				compare(t, askBare(t), cluster)
			}
		})
	}
}

// The yardstick itself: a bare master against another bare one. Only on demand, for those who change the script.
func TestBareEqualsBare(t *testing.T) {
	if os.Getenv("SALTCLUSTER_PARITY") == "" {
		t.Skip("set SALTCLUSTER_PARITY")
	}
	for _, v := range lab.Versions {
		t.Run(v, func(t *testing.T) {
			bare := func(t *testing.T) []Observation { return observeBare(t, v) }
			one, other := both(t, bare, bare)
			compare(t, one, other)
		})
	}
}

// both observes the bare master and the other one at the same time.
func both(t *testing.T, bare, other func(*testing.T) []Observation) (a, b []Observation) {
	var sides sync.WaitGroup // and not t.Parallel, which -parallel 1 would make one after the other
	sides.Go(func() { t.Run("bare", func(t *testing.T) { a = bare(t) }) })
	sides.Go(func() { t.Run("other", func(t *testing.T) { b = other(t) }) })
	sides.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return a, b
}

// observeBare runs the script against a bare master of the version with one minion of each.
func observeBare(t *testing.T, version string) []Observation {
	l := labtest.New(t, lab.Options{})
	b, err := l.NewBare(t.Context(), version, lab.Versions, MasterSettings(), nil)
	labtest.Must(t, err)
	labtest.Must(t, b.Up(t.Context()))
	seen := observe(t, NewSubject(b))
	labtest.Must(t, l.Close())
	return seen
}

func observe(t *testing.T, s *Subject) []Observation {
	labtest.Must(t, s.Clean())
	var all []Observation
	for _, st := range script() {
		o := s.Observe(t.Context(), st)
		t.Logf("%-45s exit code %d in %.1fs", o.Step, o.Code, o.Took.Seconds())
		if o.Code == 64 { // EX_USAGE
			t.Errorf("%s: Salt does not know these arguments: %q", o.Step, st.Argv)
		}
		all = append(all, o)
	}
	return all
}

func compare(t *testing.T, bare, cluster []Observation) {
	for i := range bare {
		if err := bare[i].Failed; err != nil {
			t.Errorf("%s: against the bare master: %v", bare[i].Step, err)
		}
		if d := Diff(bare[i], cluster[i]); d != "" {
			t.Errorf("%s:\n%s", bare[i].Step, d)
		}
	}
}
