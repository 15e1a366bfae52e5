package integration

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

// panel is what Grafana asks of a panel, as far as ours use it.
type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ H, W, X, Y int }
	Datasource  struct{ Type, UID string }
	Targets     []struct{ Expr, RefID, LegendFormat string }
}

// gridColumns is how wide Grafana's grid is.
const gridColumns = 24

// The dashboard can be imported, its panels do not overlap, and its queries use the variables that it has. Package
// integration/grafana checks it against Grafana's schema, the daemon that its queries name metrics that exist.
func TestDashboard(t *testing.T) {
	var d struct {
		UID, Title    string
		ID            *int
		SchemaVersion int
		Panels        []panel
		Templating    struct{ List []struct{ Name, Type string } }
	}
	require.NoError(t, json.Unmarshal([]byte(text(t, "../packaging/monitoring/dashboard.json")), &d))
	if d.UID == "" || d.Title == "" || d.ID != nil || d.SchemaVersion < 36 {
		t.Errorf("uid %q, title %q, schema %d; a dashboard to import has no id", d.UID, d.Title, d.SchemaVersion)
	}
	variables := map[string]bool{}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	used := regexp.MustCompile(`\$\{?([a-zA-Z_]+)`)
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		checkPanel(t, p)
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s: another panel has the id %d, or it is 0", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" {
					t.Fatalf("%s covers %s", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
		for _, q := range p.Targets {
			for _, name := range used.FindAllStringSubmatch(q.Expr+p.Datasource.UID, -1) {
				if !variables[name[1]] {
					t.Errorf("%s: there is no variable %s", p.Title, name[1])
				}
			}
		}
	}
	if len(d.Panels) < 20 {
		t.Errorf("only %d panels", len(d.Panels))
	}
}

func checkPanel(t *testing.T, p panel) {
	t.Helper()
	if g := p.GridPos; p.Title == "" || g.W < 1 || g.H < 1 || g.X < 0 || g.Y < 0 || g.X+g.W > gridColumns {
		t.Errorf("panel %d, %q: %+v", p.ID, p.Title, g)
	}
	if p.Type == "row" {
		return
	}
	if (p.Type != "stat" && p.Type != "timeseries") || p.Datasource.Type != "prometheus" || len(p.Targets) == 0 {
		t.Errorf("%s: type %q, data of %q, %d queries", p.Title, p.Type, p.Datasource.Type, len(p.Targets))
	}
	refs := map[string]bool{}
	for _, q := range p.Targets {
		if refs[q.RefID] || q.RefID == "" || q.LegendFormat == "" {
			t.Errorf("%s: query %q, legend %q", p.Title, q.RefID, q.LegendFormat)
		}
		refs[q.RefID] = true
		if !strings.Contains(q.Expr, `job=~"$job"`) || strings.Count(q.Expr, "(") != strings.Count(q.Expr, ")") {
			t.Errorf("%s: %s", p.Title, q.Expr)
		}
	}
}
