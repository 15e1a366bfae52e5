package daemon

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/integration/require"
	"saltclusterd/metric"
	"saltclusterd/sidecar/adminapi"
)

var update = flag.Bool("update", false, "write docs/reference/metrics.md anew")

var descHelp = regexp.MustCompile(`help: ("(?:[^"\\]|\\.)*"),`)

// histograms are those which have no series before something has happened, so that gathering does not tell their type.
var histograms = []string{"saltcluster_minion_request_seconds"}

// withLibcrypto is registered only where the host has an OpenSSL that can be used.
const withLibcrypto = "saltcluster_node_rsa_faults_total"

const metricsHead = `# Metrics

Made from the registered metrics (` + "`go test ./cmd/saltclusterd/daemon -run MetricsReference -update`" + `).

` + "`/metrics`" + ` on ` + "`health_listen`" + ` serves them to clients in ` + "`health_trusted`" + `. No label holds a minion's id, a job id, a file or an
address. Metrics of a membership are there while the node is a member. The Go runtime's own (` + "`go_`" + `, ` + "`process_`" + `) are there as
well. [Monitor the cluster](../how-to/monitor.md) says where to look for what.

A name is ` + "`saltcluster_<subsystem>_<what>_<unit>`" + `. The unit is seconds, bytes or what is counted, in the plural. A state, 1 or 0, ends in
` + "`up`, `ready`, `leader` or `draining`" + `. Counters end in ` + "`_total`" + `, and nothing else does. Each section below is a subsystem.
[Former names](#former-names) lists what was renamed.
`

const renamedHead = `
## Former names

The old names are exported as well until version 1.0, with the same values and "Deprecated" in their help. Labels and values are
as before. All begin with ` + "`saltcluster_`" + `. [Monitor the cluster](../how-to/monitor.md#names-before-090) says how to change dashboards.

| old name | new name |
|---|---|
`

// TestMetricsReference_Current: docs/reference/metrics.md has all metrics that a member registers.
func TestMetricsReference_Current(t *testing.T) {
	const path = "../../../docs/reference/metrics.md"
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	want := metricsReference(t, string(have))
	if *update {
		have = want
		require.NoError(t, os.WriteFile(path, want, 0o644))
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s is not what is registered; run: go test ./cmd/saltclusterd/daemon -run MetricsReference -update", path)
	}
}

// metricsReference renders the metrics by subsystem: the first word of a name. What this host cannot register is taken
// from the page as it is.
func metricsReference(t *testing.T, page string) []byte {
	t.Helper()
	n := startNode(t, "m1", t.TempDir())
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: longest}, quiet); err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	families, err := n.reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		types[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	rows := map[string]string{}
	for _, r := range []*prometheus.Registry{n.reg.Host, n.reg.Current()} {
		descs := make(chan *prometheus.Desc)
		go func() { defer close(descs); r.Describe(descs) }()
		for d := range descs {
			name, row := metricRow(t, d, types)
			if strings.HasPrefix(name, "saltcluster_") {
				rows[name] = row
			}
		}
	}
	for line := range strings.Lines(page) {
		if rows[withLibcrypto] == "" && strings.HasPrefix(line, "| `"+withLibcrypto+"`") {
			rows[withLibcrypto] = line
		}
	}
	meanings := map[string]string{}
	for _, s := range metric.Subsystems {
		meanings[s.Name] = s.Meaning
	}
	var b bytes.Buffer
	b.WriteString(metricsHead)
	subsystem := ""
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if of, _, _ := strings.Cut(strings.TrimPrefix(name, "saltcluster_"), "_"); of != subsystem {
			subsystem = of
			fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| name | type | labels | meaning |\n|---|---|---|---|\n", of, meanings[of])
		}
		b.WriteString(rows[name])
	}
	b.WriteString(renamedHead)
	for _, r := range metric.Renamed {
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", r.Old, r.New)
	}
	return b.Bytes()
}

func metricRow(t *testing.T, d *prometheus.Desc, types map[string]string) (name, row string) {
	t.Helper()
	named, helped := descName.FindStringSubmatch(d.String()), descHelp.FindStringSubmatch(d.String())
	if named == nil || helped == nil {
		t.Fatalf("a description of another form: %s", d)
	}
	name = named[1]
	help, err := strconv.Unquote(helped[1])
	require.NoError(t, err)
	kind := types[name]
	switch {
	case kind != "":
	case strings.HasSuffix(name, "_total"):
		kind = "counter"
	case slices.Contains(histograms, name):
		kind = "histogram"
	case strings.HasPrefix(name, "saltcluster_"):
		kind = "gauge"
		if strings.HasSuffix(name, "_seconds") && !strings.HasPrefix(name, "saltcluster_tls_") { // those want TLS
			t.Errorf("%s has no series yet: say in this test whether it is a histogram", name)
		}
	}
	var of []string
	for _, l := range labels(d) {
		of = append(of, "`"+l+"`")
	}
	return name, fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, kind, strings.Join(of, ", "),
		strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`).Replace(help))
}
