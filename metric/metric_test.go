package metric

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func makeAll(reg prometheus.Registerer) {
	s := NewSet(reg, "test")
	s.NewCounter("a", "A.").Inc()
	s.NewCounterVec("b", "B.", "x", "y").WithLabelValues("1", "2").Inc()
	s.NewCounterFunc("c", "C.", func() float64 { return 1 })
	s.NewGauge("d", "D.").Set(1)
	s.NewGaugeVec("e", "E.", "x").WithLabelValues("1").Set(1)
	s.NewGaugeFunc("f", "F.", func() float64 { return 1 })
	s.NewHistogram("g", "G.", 1, 2, 3).Observe(1)
	s.NewHistogramVec("h", "H.", 1, 2, 3, "x").WithLabelValues("1").Observe(1)
}

func TestSet(t *testing.T) {
	reg := prometheus.NewRegistry()
	makeAll(reg)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	want := []string{"saltcluster_test_a", "saltcluster_test_b", "saltcluster_test_c", "saltcluster_test_d",
		"saltcluster_test_e", "saltcluster_test_f", "saltcluster_test_g",
		"saltcluster_test_h"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	makeAll(nil) // they count, but are not exported
}
