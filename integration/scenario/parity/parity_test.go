//go:build integration

package parity

import (
	"testing"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// observeBare runs the script against a bare master of the version with one minion of each.
func observeBare(t *testing.T, version string) []Observation {
	l := labtest.New(t, lab.Options{})
	b, err := l.NewBare(t.Context(), version, lab.Versions, MasterSettings(), nil)
	labtest.Must(t, err)
	labtest.Must(t, b.Up(t.Context()))
	seen := observe(t, NewSubject(b.Master, b.Minions))
	labtest.Must(t, l.Close())
	return seen
}

func observe(t *testing.T, s *Subject) []Observation {
	labtest.Must(t, s.Clean())
	var all []Observation
	for _, st := range Script() {
		o := s.Observe(t.Context(), st)
		t.Logf("%-45s exit code %d in %.1fs", o.Step, o.Code, o.Took.Seconds())
		all = append(all, o)
	}
	return all
}
func compare(t *testing.T, a, b []Observation) {
	for i := range a {
		if d := Diff(a[i], b[i]); d != "" {
			t.Errorf("%s:\n%s", a[i].Step, d)
		}
	}
}

// The yardstick itself: a bare master against another bare one.
func TestBareEqualsBare(t *testing.T) {
	for _, v := range lab.Versions {
		t.Run(v, func(t *testing.T) { compare(t, observeBare(t, v), observeBare(t, v)) })
	}
}
