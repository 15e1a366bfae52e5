package daemon

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/integration/require"
	"saltclusterd/metric"
	"saltclusterd/sidecar/adminapi"
)

var (
	metricName = regexp.MustCompile(`\b(?:saltcluster|process|go)_[a-z0-9_]+\b`)
	descLabels = regexp.MustCompile(`variableLabels: \{([^}]*)\}`)
	descName   = regexp.MustCompile(`fqName: "([^"]+)"`)
)

// registered names all metrics of a node that is a member, also those that have no value yet, with their labels.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	n := startNode(t, "m1", t.TempDir())
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, r := range []*prometheus.Registry{n.reg.Host, n.reg.Current()} {
		descs := make(chan *prometheus.Desc)
		go func() {
			defer close(descs)
			r.Describe(descs)
		}()
		for d := range descs {
			if m := descName.FindStringSubmatch(d.String()); m != nil {
				names[m[1]] = labels(d)
			}
		}
	}
	return names
}

// labels is never nil.
func labels(d *prometheus.Desc) []string {
	m := descLabels.FindStringSubmatch(d.String())
	if m == nil || m[1] == "" {
		return []string{}
	}
	return strings.Split(m[1], ",")
}

// No minion, job, file or address is a label's value: a herd would fill Prometheus.
func TestLabelsAreBounded(t *testing.T) {
	words := []string{ // of lists in our code; cmd: router.Label
		"action", "check", "cmd", "code", "command", "consumer", "journal", "limit", "op", "outcome", "proto", "reason",
		"result", "route", "rule",
		"sign", "source", "state", "transport", "verb",
	}
	members := []string{"peer", "node"}
	labelled := 0
	for name, of := range registered(t) {
		if !strings.HasPrefix(name, "saltcluster_") {
			continue
		}
		for _, l := range of {
			labelled++
			if !slices.Contains(words, l) && !slices.Contains(members, l) {
				t.Errorf("%s: what bounds the values of %q?", name, l)
			}
		}
	}
	if labelled < 20 {
		t.Errorf("%d labels found", labelled)
	}
}

// Names keep the scheme, and what was renamed is registered under its new name. Package metric checks names as metrics are
// made; this is about all of a member, whatever made them.
func TestMetricNames(t *testing.T) {
	names := registered(t)
	for name := range names {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		if !slices.ContainsFunc([]metric.Kind{metric.Counter, metric.Gauge, metric.Histogram}, func(k metric.Kind) bool {
			return metric.CheckName(name, k) == nil
		}) {
			t.Error(metric.CheckName(name, metric.Gauge))
		}
	}
	rare := []string{strings.TrimPrefix(withLibcrypto, metric.Prefix), "share_up"} // on some hosts only
	for _, r := range metric.Renamed {
		if names[metric.Prefix+r.New] == nil && !slices.Contains(rare, r.New) {
			t.Errorf("%s was renamed to %s, which nothing registers", r.Old, r.New)
		}
	}
}

// What the guide tells Prometheus to drop are old names only, and most of them.
func TestMetricNames_Dropped(t *testing.T) {
	page, err := os.ReadFile("../../../docs/how-to/monitor.md")
	require.NoError(t, err)
	found := regexp.MustCompile(`regex: (.*)`).FindSubmatch(page)
	if found == nil {
		t.Fatal("the guide has no regular expression")
	}
	dropped, old := regexp.MustCompile("^(?:"+string(found[1])+")$"), 0
	for _, r := range metric.Renamed {
		if dropped.MatchString(metric.Prefix + r.Old) {
			old++
		}
	}
	if old <= len(metric.Renamed)/2 {
		t.Errorf("it matches %d of %d old names", old, len(metric.Renamed))
	}
	for name := range registered(t) {
		if dropped.MatchString(name) {
			t.Errorf("it matches %s, which is a name of today", name)
		}
	}
}

// Alert rules and dashboard name only metrics that exist.
func TestMonitoringNamesMetricsThatExist(t *testing.T) {
	names := registered(t)
	for _, file := range []string{"alerts.yml", "dashboard.json"} {
		text, err := os.ReadFile(filepath.Join("../../../packaging/monitoring", file))
		require.NoError(t, err)
		found := metricName.FindAllString(string(text), -1)
		if len(found) < 10 {
			t.Errorf("%s names %d metrics", file, len(found))
		}
		for _, name := range found {
			base := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if names[name] == nil && names[base] == nil {
				t.Errorf("%s: no metric %s", file, name)
			}
		}
	}
}

// What an operator wants numbers of, and where they are.
func TestEverythingHasANumber(t *testing.T) {
	names := registered(t)
	for what, of := range map[string][]string{
		"raft": {"consensus_leader", "consensus_term", "consensus_applied_index",
			"consensus_commit_seconds"},
		"gossip":      {"gossip_alive_members", "gossip_dropped_packets_total"},
		"subscribers": {"edge_subscribers", "edge_blocked_subscribers"},
		"publications and their fan-out": {"fanout_publications_total", "fanout_deliver_seconds", "fanout_seal_seconds",
			"fanout_missed_records_total"},
		"requests by command, result and backend": {"minion_requests_total", "minion_lost_requests_total",
			"minion_request_seconds", "master_requests_total"},
		"sign-ins by result, their queue": {"signin_requests_total", "signin_waiting_requests", "signin_wait_seconds"},
		"what was refused":                {"minion_refused_requests_total", "wall_findings_total"},
		"keys by state":                   {"keys_files"},
		"roots":                           {"roots_head_revision", "roots_base_revision"},
		"jobs": {"master_running_jobs", "jobs_expected_returns_total", "jobs_arrived_returns_total",
			"jobs_missing_returns_total"},
		"spool": {"returns_waiting_records", "returns_oldest_seconds",
			"journal_refused_records_total", "returns_unanswered_records"},
		"relays":      {"minion_relayed_refused_requests_total", "minion_lost_requests_total"},
		"the AES key": {"epoch_number", "epoch_age_seconds", "epoch_previous_subscribers"},
		"drain":       {"node_draining", "health_ready", "health_check_level"},
		"versions":    {"build_info"},
		"certificate": {"peer_certificate_age_seconds", "peer_certificate_max_age_seconds"},
		"fsync":       {"journal_group_seconds", "consensus_commit_seconds"},
		"the salt-master as seen from outside": {"master_up", "master_probe_seconds", "master_request_seconds",
			"master_in_flight_requests",
			"master_stalls_total"},
	} {
		for _, name := range of {
			if names["saltcluster_"+name] == nil {
				t.Errorf("%s: no saltcluster_%s", what, name)
			}
		}
	}
}

// The numbers that are made when they are asked for have values.
func TestNumbers(t *testing.T) {
	n := startNode(t, "m1", t.TempDir())
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	families, err := n.reg.Gather()
	require.NoError(t, err)
	have := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			have[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	if have["saltcluster_epoch_number"] != 1 || have["saltcluster_epoch_age_seconds"] <= 0 {
		t.Errorf("epoch %g, %gs old", have["saltcluster_epoch_number"], have["saltcluster_epoch_age_seconds"])
	}
	for _, name := range []string{"node_draining", "master_running_jobs", "jobs_missing_returns_total", "returns_waiting_records",
		"master_in_flight_requests"} {
		if v, ok := have["saltcluster_"+name]; !ok || v != 0 {
			t.Errorf("saltcluster_%s: %g, %t", name, v, ok)
		}
	}
}
