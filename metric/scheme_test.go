package metric

import (
	"regexp"
	"slices"
	"testing"
)

func TestCheckName(t *testing.T) {
	for _, test := range []struct {
		name string
		kind Kind
		ok   bool
	}{
		{"saltcluster_roots_sent_bytes_total", Counter, true},
		{"saltcluster_roots_sent_bytes", Counter, false},
		{"saltcluster_roots_sent_total", Counter, false},
		{"saltcluster_roots_total", Counter, false},
		{"saltcluster_wall_findings_total", Counter, true},
		{"saltcluster_master_up", Gauge, true},
		{"saltcluster_master_sub_up", Gauge, true},
		{"saltcluster_master_sup", Gauge, false},
		{"saltcluster_node_draining", Gauge, true},
		{"saltcluster_draining", Gauge, false},
		{"saltcluster_jobs_known", Gauge, false},
		{"saltcluster_keys_files_total", Gauge, false},
		{"saltcluster_build_info", Gauge, true},
		{"saltcluster_minion_request_seconds", Histogram, true},
		{"saltcluster_minion_request_milliseconds", Histogram, false},
		{"saltcluster_minion_request_seconds_total", Histogram, false},
		{"saltcluster_sidecar_requests_total", Counter, false},
		{"requests_total", Counter, false},
		{"saltcluster_minion_requests_total", "summary", false},
	} {
		if err := CheckName(test.name, test.kind); (err == nil) != test.ok {
			t.Errorf("%s, a %s: %v", test.name, test.kind, err)
		}
	}
}

// Subsystems are one word each, in alphabetical order.
func TestSubsystems(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+$`)
	var names []string
	for _, s := range Subsystems {
		names = append(names, s.Name)
		if !word.MatchString(s.Name) || s.Meaning == "" {
			t.Errorf("%q: %q", s.Name, s.Meaning)
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(names)) != len(Subsystems) {
		t.Errorf("not sorted, or twice: %q", names)
	}
}
