package metrics

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/spool"
)

// values returns what was gathered, by name and labels.
func values(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := []string{f.GetName()}
			for _, l := range m.GetLabel() {
				name = append(name, l.GetValue())
			}
			v := m.GetGauge().GetValue()
			if f.GetType() == dto.MetricType_COUNTER {
				v = m.GetCounter().GetValue()
			}
			out[strings.Join(name, " ")] = v
		}
	}
	return out
}

type publishStats struct{ onPrevious int }

func (p publishStats) Stats() edge.PubStats { return edge.PubStats{OnPrevious: p.onPrevious} }

type journals []returns.JournalStats

func (j journals) Stats() []returns.JournalStats { return j }

func TestServiceCollector(t *testing.T) {
	waiting := returns.JournalStats{Name: "own", Oldest: map[string]time.Time{"files": time.Now().Add(-time.Hour)}}
	waiting.Consumers = []spool.ConsumerStats{{Name: "files", Pending: 3}, {Name: "bus"}}
	for _, test := range []struct {
		name     string
		jobs     JobCounts
		draining bool
		journals journals
		want     map[string]float64
	}{
		{"idle", JobCounts{}, false, nil, map[string]float64{
			"saltcluster_node_draining": 0, "saltcluster_master_running_jobs": 0, "saltcluster_jobs_missing_returns_total": 0,
			"saltcluster_epoch_number": 0, "saltcluster_epoch_previous_subscribers": 7,
		}},
		{"at work", JobCounts{Running: 2, Expected: 10, Returned: 8}, true, journals{waiting}, map[string]float64{
			"saltcluster_node_draining": 1, "saltcluster_master_running_jobs": 2, "saltcluster_jobs_expected_returns_total": 10,
			"saltcluster_jobs_arrived_returns_total": 8, "saltcluster_jobs_missing_returns_total": 2,
			"saltcluster_returns_waiting_records files own": 3, "saltcluster_returns_waiting_records bus own": 0,
			"saltcluster_returns_oldest_seconds bus own": 0,
		}},
	} {
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(NewServiceCollector(Service{
			View: state.New().View, Publish: publishStats{7}, Returns: test.journals,
			Jobs: func() JobCounts { return test.jobs }, Draining: func() bool { return test.draining },
		}))
		got := values(t, reg)
		for name, want := range test.want {
			if v, ok := got[name]; !ok || v != want {
				t.Errorf("%s: %s is %v, want %v", test.name, name, v, want)
			}
		}
		if age := got["saltcluster_returns_oldest_seconds files own"]; (age >= 3600) != (len(test.journals) > 0) {
			t.Errorf("%s: the oldest return waits for %v seconds", test.name, age)
		}
		if _, ok := got["saltcluster_epoch_age_seconds"]; ok {
			t.Errorf("%s: an epoch that never began has an age", test.name)
		}
	}
}

// The metrics of a membership end with it, those of the host remain.
func TestRegistry(t *testing.T) {
	reg := NewRegistry("1.2.3")
	gauge := func(name string) prometheus.Collector {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "A test."})
	}
	seen := func() (names []string) {
		for name := range maps.Keys(values(t, reg)) {
			if strings.HasPrefix(name, "test_") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"the host", func() { reg.MustRegister(gauge("test_host")) }, []string{"test_host"}},
		{"a membership", func() { reg.Renew(); reg.MustRegister(gauge("test_one")) }, []string{"test_host", "test_one"}},
		{"the next", func() { reg.Renew(); reg.MustRegister(gauge("test_two")) }, []string{"test_host", "test_two"}},
		{"the first again", func() { reg.Renew(); reg.MustRegister(gauge("test_one")) }, []string{"test_host", "test_one"}},
	} {
		step.do()
		if got := seen(); !slices.Equal(got, step.want) {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(values(t, reg))), func(name string) bool {
		return strings.HasPrefix(name, "saltcluster_build_info") && strings.HasSuffix(name, "1.2.3")
	}) {
		t.Error("the version is not told")
	}
}
