package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

// Package metric makes all metrics, so that each name keeps the scheme: it panics otherwise. A literal of Opts, or one of
// the library's constructors, would be a way around it.
func TestMetrics_MadeByPackageMetric(t *testing.T) {
	const library = "github.com/prometheus/client_golang/prometheus"
	looked := 0
	walkSources(t, func(dir, path string) {
		if dir == "metric" || under(dir, "integration") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, imported := range file.Imports {
			switch name, _ := strconv.Unquote(imported.Path.Value); name {
			case library + "/promauto":
				t.Errorf("%s imports promauto: metrics are made by package metric", path)
			case library:
				looked++
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && makesMetric(s) {
				t.Errorf("%s: prometheus.%s makes a metric: use package metric", path, s.Sel.Name)
			}
			return true
		})
	})
	if looked < 20 {
		t.Errorf("only %d files import %s", looked, library)
	}
}

func makesMetric(s *ast.SelectorExpr) bool {
	if of, ok := s.X.(*ast.Ident); !ok || of.Name != "prometheus" {
		return false
	}
	name := s.Sel.Name
	if strings.HasSuffix(name, "Opts") || name == "NewDesc" || name == "BuildFQName" {
		return true
	}
	for _, kind := range []string{"Counter", "Gauge", "Histogram", "Summary", "Untyped"} {
		if strings.HasPrefix(name, "New"+kind) {
			return true
		}
	}
	return false
}
