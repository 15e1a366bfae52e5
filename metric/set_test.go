package metric

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/integration/require"
)

func makeAll(reg prometheus.Registerer) {
	s := NewSet(reg, "node")
	s.NewCounter("a_files_total", "A.").Inc()
	s.NewCounterVec("b_files_total", "B.", "x", "y").WithLabelValues("1", "2").Inc()
	s.NewCounterFunc("c_files_total", "C.", func() float64 { return 1 })
	s.NewGauge("d_files", "D.").Set(1)
	s.NewGaugeVec("e_files", "E.", "x").WithLabelValues("1").Set(1)
	s.NewGaugeFunc("f_files", "F.", func() float64 { return 1 })
	s.NewHistogram("g_seconds", "G.", 1, 2, 3).Observe(1)
	s.NewHistogramVec("h_seconds", "H.", 1, 2, 3, "x").WithLabelValues("1").Observe(1)
	s.WithLabels(prometheus.Labels{"x": "1"}).NewGauge("i_files", "I.").Set(1)
}

func TestSet(t *testing.T) {
	reg := prometheus.NewRegistry()
	makeAll(reg)
	families, err := reg.Gather()
	require.NoError(t, err)
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	want := []string{
		"saltcluster_node_a_files_total", "saltcluster_node_b_files_total", "saltcluster_node_c_files_total",
		"saltcluster_node_d_files", "saltcluster_node_e_files", "saltcluster_node_f_files", "saltcluster_node_g_seconds",
		"saltcluster_node_h_seconds", "saltcluster_node_i_files",
	}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	last := families[len(families)-1].GetMetric()[0].GetLabel()
	if len(last) != 1 || last[0].GetName() != "x" || last[0].GetValue() != "1" {
		t.Errorf("labels %v", last)
	}
	makeAll(nil) // they count, but are not exported
}

// A name that breaks the scheme does not get as far as a release: the component that makes the metric panics.
func TestSet_RefusesNames(t *testing.T) {
	for _, refused := range []func(){
		func() { NewSet(nil, "node").NewCounter("sent_bytes", "A counter without _total.") },
		func() { NewSet(nil, "node").NewGauge("files_total", "A gauge with it.") },
		func() { NewSet(nil, "parcel").NewGauge("files", "A subsystem of nobody.") },
		func() { NewSet(nil, "node").NewDesc(Gauge, "waiting", "A gauge of what?") },
		func() { NewSet(nil, "node").NewHistogram("wait_milliseconds", "No base unit.", 1, 2, 3) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a name that breaks the scheme was taken")
				}
			}()
			refused()
		}()
	}
}
