package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"saltclusterd/integration/require"
)

const (
	runbooks = "../docs/runbooks"
	// runbookURL is where the packages put the runbooks.
	runbookURL = "file:///usr/share/doc/saltclusterd/docs/runbooks/"
	// maxRunbook is the most words that a page has that is read at 3 a.m.
	maxRunbook = 120
)

// Each alert has a severity, a text and a runbook, and each runbook an alert. make test-alerts runs the rules.
func TestAlerts_HaveRunbooks(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert               string
				Labels, Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text(t, "../packaging/monitoring/alerts.yml")), &rules))
	alerts := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			alerts[r.Alert] = true
			switch r.Labels["severity"] {
			case "critical", "warning", "info":
			default:
				t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s: no summary or description", r.Alert)
			}
			if want := runbookURL + r.Alert + ".md"; r.Annotations["runbook_url"] != want {
				t.Errorf("%s: runbook_url %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
			}
			page := text(t, filepath.Join(runbooks, r.Alert+".md"))
			if n := len(strings.Fields(page)); n > maxRunbook {
				t.Errorf("the runbook of %s has %d words, at most %d", r.Alert, n, maxRunbook)
			}
			for _, part := range []string{"**What it means.**", "**What minions notice.**", "**Type first.**"} {
				if !strings.Contains(page, part) {
					t.Errorf("the runbook of %s lacks %s", r.Alert, part)
				}
			}
		}
	}
	pages, err := os.ReadDir(runbooks)
	require.NoError(t, err)
	for _, p := range pages {
		if name := strings.TrimSuffix(p.Name(), ".md"); !alerts[name] {
			t.Errorf("the runbook %s is for no alert", name)
		}
	}
	if len(alerts) < 15 {
		t.Errorf("only %d alerts", len(alerts))
	}
}
