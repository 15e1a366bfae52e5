package integration

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

const (
	// maxPackageLines bounds the lines of a package, tests excepted.
	maxPackageLines = 5000
	// maxDaemonLines bounds package daemon, which only composes.
	maxDaemonLines = 2500
	// maxFields bounds the fields of a struct.
	maxFields = 20
)

// largeStructs may have more fields than maxFields.
var largeStructs = []string{
	// Tables of options, of functions, and of what was measured or read.
	"cmd/saltclusterd/config.Edge", "cmd/saltclusterctl/adopt.Site", "integration/herd.Stats", "integration/scale.Costs",
	"sidecar.Config", "sidecar/upstream.ReqConfig", "sidecar/saltwire.Raw", "sidecar/statuspage.view",
	"sidecar/saltcrypt/libcrypto.library",
}

// walkSources calls f with each Go file that is not a test, by package directory.
func walkSources(t *testing.T, f func(dir, path string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == ".git"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			f(strings.TrimPrefix(filepath.Dir(path), "../"), path)
		}
		return nil
	})
	require.NoError(t, err)
}

func TestPackagesStaySmall(t *testing.T) {
	lines := map[string]int{}
	walkSources(t, func(dir, path string) {
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			lines[dir]++
		}
	})
	for dir, n := range lines {
		limit := maxPackageLines
		if dir == "cmd/saltclusterd/daemon" {
			limit = maxDaemonLines
		}
		if n > limit {
			t.Errorf("package %s has %d lines, at most %d: give a part of it a package of its own", dir, n, limit)
		}
	}
}

func TestStructsStaySmall(t *testing.T) {
	var found []string
	files := token.NewFileSet()
	walkSources(t, func(dir, path string) {
		file, err := parser.ParseFile(files, path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			st, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			fields := 0
			for _, f := range st.Fields.List {
				fields += max(1, len(f.Names))
			}
			if fields <= maxFields {
				return true
			}
			name := dir + "." + spec.Name.Name
			found = append(found, name)
			if !slices.Contains(largeStructs, name) {
				t.Errorf("%s has %d fields, at most %d", name, fields, maxFields)
			}
			return true
		})
	})
	for _, name := range largeStructs {
		if !slices.Contains(found, name) {
			t.Errorf("%s is small now: take it off the list", name)
		}
	}
}
