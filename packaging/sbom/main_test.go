package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

func read(t *testing.T, text string) (d document) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &d))
	return d
}

const (
	first = `{"metadata": {"tools": [{"name": "x", "version": "v1", "hashes": [{"content": "of this machine"}]}],
		"component": {"type": "application", "name": "saltclusterd", "bom-ref": "first"}},
		"components": [{"type": "library", "name": "b", "version": "v1", "licenses": [{"license": {"id": "MIT"}}]},
			{"type": "library", "name": "std"}],
		"dependencies": [{"ref": "first", "dependsOn": ["b"]}, {"ref": "b"}]}`
	second = `{"metadata": {"component": {"type": "application", "name": "saltclusterd", "bom-ref": "second"}},
		"components": [{"type": "library", "name": "a", "version": "v2", "licenses": [{"license": {"id": "ISC"}}]},
			{"type": "library", "name": "b", "version": "v1", "licenses": [{"license": {"id": "MIT"}}]}],
		"dependencies": [{"ref": "second", "dependsOn": ["a", "b"]}, {"ref": "a"}, {"ref": "b"}]}`
)

func TestMerge(t *testing.T) {
	var d document
	for _, text := range []string{first, second} {
		require.NoError(t, d.merge(read(t, text)))
	}
	text, err := d.encode()
	if err != nil || strings.Contains(string(text), "of this machine") {
		t.Errorf("%v\n%s", err, text)
	}
	var got []string
	for _, c := range append(d.Components, d.Metadata.Component) {
		got = append(got, c.Name+" "+c.Licenses[0].License.ID)
	}
	const want = "a ISC, b MIT, saltclusterd Apache-2.0, std BSD-3-Clause, saltclusterd Apache-2.0"
	if strings.Join(got, ", ") != want || len(d.Dependencies) != 4 {
		t.Errorf("%q, not %q; %s", got, want, d.Dependencies)
	}
	if err := d.merge(read(t, strings.ReplaceAll(second, `"v2"`, `"v3"`))); !errors.Is(err, errDiffer) {
		t.Errorf("two versions of a module: %v", err)
	}
	for _, to := range []string{`"GPL-3.0-only"`, `""`} {
		if err := d.merge(read(t, strings.ReplaceAll(second, `"ISC"`, to))); !errors.Is(err, errLicense) {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		cgo  string
		dep  debug.Module
		want error
	}{
		"good":     {"0", debug.Module{Path: "a", Sum: "h1:a"}, nil},
		"cgo":      {"1", debug.Module{Path: "a", Sum: "h1:a"}, errCgo},
		"replaced": {"0", debug.Module{Path: "a", Sum: "h1:a", Replace: &debug.Module{Path: "../b"}}, errReplaced},
		"no sum":   {"0", debug.Module{Path: "a"}, errNoSum},
	} {
		cgo := []debug.BuildSetting{{Key: "CGO_ENABLED", Value: c.cgo}}
		info := &debug.BuildInfo{Deps: []*debug.Module{&c.dep}, Settings: cgo}
		if err := check(info); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", name, err, c.want)
		}
	}
}

func TestRun_NotAProgram(t *testing.T) {
	path, out := filepath.Join(t.TempDir(), "x"), filepath.Join(t.TempDir(), "dist/x.cdx.json")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	if err := run(out, "v1", []string{path}); err == nil {
		t.Error("a shell script has a bill of materials")
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("an error leaves a document behind")
	}
}
