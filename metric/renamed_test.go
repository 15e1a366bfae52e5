package metric

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"saltclusterd/integration/require"
)

// An old name is no new one, and leads to a name that keeps the scheme.
func TestRenamed(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Renamed {
		for _, name := range []string{r.Old, r.New} {
			if seen[name] {
				t.Errorf("%s is in the table twice", name)
			}
			seen[name] = true
		}
		if !keepsScheme(r.New) {
			t.Errorf("%s breaks the scheme", r.New)
		}
	}
}

func keepsScheme(name string) bool {
	for _, kind := range []Kind{Counter, Gauge, Histogram} {
		if CheckName(Prefix+name, kind) == nil {
			return true
		}
	}
	return false
}

func TestWithOldNames(t *testing.T) {
	reg := prometheus.NewRegistry()
	sent := NewSet(reg, "datacache").NewCounter("sent_bytes_total", "Bytes.")
	NewSet(reg, "signin").NewCounterVec("requests_total", "Sign-ins.", "outcome").WithLabelValues("accepted").Add(2)
	NewSet(reg, "minion").NewHistogram("request_seconds", "Time.", 1, 2, 3).Observe(1)
	NewSet(reg, "consensus").NewGauge("term", "It never had another name.").Set(9)
	sent.Add(7)
	families, err := WithOldNames(reg).Gather()
	require.NoError(t, err)
	byName := map[string]*dto.MetricFamily{}
	for _, f := range families {
		if byName[f.GetName()] != nil {
			t.Errorf("%s is there twice", f.GetName())
		}
		byName[f.GetName()] = f
	}
	if len(families) != 7 { // four, three of them under two names
		t.Errorf("%d families", len(families))
	}
	for old, name := range map[string]string{
		"saltcluster_datacache_sent_bytes": "saltcluster_datacache_sent_bytes_total",
		"saltcluster_signin_total":         "saltcluster_signin_requests_total", "saltcluster_sidecar_request_seconds": "saltcluster_minion_request_seconds",
	} {
		a, b := byName[old], byName[name]
		if a == nil || b == nil {
			t.Fatalf("%s: %v, %s: %v", old, a, name, b)
		}
		if a.GetHelp() != "Deprecated: use "+name+"." || a.GetType() != b.GetType() || a.GetMetric()[0] != b.GetMetric()[0] {
			t.Errorf("%s is not %s: %v", old, name, a)
		}
	}
	if n := byName["saltcluster_datacache_sent_bytes"].GetMetric()[0].GetCounter().GetValue(); n != 7 {
		t.Errorf("the old name has %g", n)
	}
}

// What could be gathered is there although something else could not.
func TestWithOldNames_Errors(t *testing.T) {
	name, broken := "saltcluster_node_draining", errors.New("broken")
	families, err := WithOldNames(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return []*dto.MetricFamily{{Name: &name}}, broken
	})).Gather()
	if !errors.Is(err, broken) || len(families) != 2 || families[1].GetName() != "saltcluster_draining" {
		t.Errorf("%v, %v", families, err)
	}
}

func BenchmarkWithOldNames(b *testing.B) {
	var families []*dto.MetricFamily
	for _, r := range Renamed {
		name := Prefix + r.New
		families = append(families, &dto.MetricFamily{Name: &name})
	}
	g := WithOldNames(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families[:len(families):len(families)], nil }))
	for b.Loop() {
		if _, err := g.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
