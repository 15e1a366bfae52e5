// Package grafana checks the dashboard of packaging/monitoring against Grafana's own schema (make test-dashboard).
package grafana

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// TestSchema reads the dashboard with the types that Grafana makes from its schema: unknown fields, missing fields and
// values out of range are errors, in panels, their options and their queries as well.
func TestSchema(t *testing.T) {
	raw, err := os.ReadFile("../../packaging/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
	if err := validate(raw); err != nil {
		t.Errorf("dashboard.json:\n%v", err)
	}
	for _, mistake := range [][2]string{
		{`"gridPos"`, `"gridPosition"`},
		{`"colorMode": "value"`, `"colorMode": 1`},
		{`"showLegend"`, `"showLegends"`},
		{`"legendFormat"`, `"legend"`},
		{`"refresh": 2`, `"refresh": "often"`},
	} {
		wrong := bytes.Replace(raw, []byte(mistake[0]), []byte(mistake[1]), 1)
		if bytes.Equal(wrong, raw) {
			t.Errorf("the dashboard has no %s", mistake[0])
		} else if validate(wrong) == nil {
			t.Errorf("%s is taken", mistake[1])
		}
	}
}

func validate(raw []byte) error {
	var d dashboard.Dashboard
	err := d.UnmarshalJSONStrict(raw)
	if found, ok := errors.AsType[cog.BuildErrors](err); err != nil && (!ok || len(found) > 0) { // an empty list is no error
		return err
	}
	return d.Validate()
}
