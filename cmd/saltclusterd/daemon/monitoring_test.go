package daemon

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/adminapi"
)

var (
	metricName = regexp.MustCompile(`\b(?:saltcluster|process|go)_[a-z0-9_]+\b`)
	descName   = regexp.MustCompile(`fqName: "([^"]+)"`)
)

// registered names all metrics of a node that is a member, also those that have no value yet.
func registered(t *testing.T) map[string]bool {
	t.Helper()
	n := startNode(t, "m1", t.TempDir())
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: time.Minute}, quiet); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, r := range []*prometheus.Registry{n.reg.host, n.reg.current()} {
		descs := make(chan *prometheus.Desc)
		go func() {
			defer close(descs)
			r.Describe(descs)
		}()
		for d := range descs {
			if m := descName.FindStringSubmatch(d.String()); m != nil {
				names[m[1]] = true
			}
		}
	}
	return names
}

// Alert rules and dashboard name only metrics that exist.
func TestMonitoringNamesMetricsThatExist(t *testing.T) {
	names := registered(t)
	for _, file := range []string{"alerts.yml", "dashboard.json"} {
		text, err := os.ReadFile(filepath.Join("../../../packaging/monitoring", file))
		if err != nil {
			t.Fatal(err)
		}
		found := metricName.FindAllString(string(text), -1)
		if len(found) < 10 {
			t.Errorf("%s names %d metrics", file, len(found))
		}
		for _, name := range found {
			base := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if !names[name] && !names[base] {
				t.Errorf("%s: no metric %s", file, name)
			}
		}
	}
}
