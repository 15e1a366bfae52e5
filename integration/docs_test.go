package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"saltclusterd/integration/guides"
)

var (
	link     = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	testName = regexp.MustCompile("`(?:[a-z0-9]+\\.)?(Test[A-Za-z0-9_]+)(?:/([^`]+))?`")
)

// What the guides refer to is there: other pages, and the tests which show what is said.
func TestGuidesReferToWhatIsThere(t *testing.T) {
	sources := testSources(t)
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := 0
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md") {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(raw), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
		for _, m := range testName.FindAllStringSubmatch(string(raw), -1) {
			tests++
			switch {
			case strings.HasSuffix(m[1], "_"): // the beginning of several
			case !strings.Contains(sources, "func "+m[1]+"("):
				t.Errorf("%s: there is no %s", page, m[1])
			case m[2] != "" && !strings.Contains(sources, `"`+m[2]+`"`) && !strings.Contains(sources, `"`+strings.ReplaceAll(m[2], "_", " ")+`"`):
				t.Errorf("%s: %s has no part %q", page, m[1], m[2])
			}
		}
	}
	if tests == 0 {
		t.Error("no test is referred to")
	}
}

// Targets of make and functions of the runners that the guides name are there. Verbs and flags: cmd/saltclusterctl.
func TestGuidesNameTargetsAndRunners(t *testing.T) {
	pages, err := guides.Read("..")
	if err != nil {
		t.Fatal(err)
	}
	makefile, cluster := text(t, "../Makefile"), text(t, "../packaging/runners/cluster.py")
	targets, functions := 0, 0
	for _, p := range pages {
		for _, c := range append(p.Lines(), p.Spans()...) {
			if !strings.HasPrefix(c.Text, "make ") && !strings.HasPrefix(c.Text, "salt-run ") {
				continue
			}
			for _, args := range guides.Arguments(c.Text, "make") {
				if targets++; len(args) == 0 || !strings.Contains(makefile, "\n"+args[0]+":") {
					t.Errorf("%s: the Makefile has no such target", c)
				}
			}
			for _, args := range guides.Arguments(c.Text, "salt-run") {
				name, ok := "", false
				if len(args) > 0 {
					name, ok = strings.CutPrefix(args[0], "cluster.")
				}
				if !ok {
					continue
				}
				if functions++; !strings.Contains(cluster, "\ndef "+name+"(") {
					t.Errorf("%s: the runner has no such function", c)
				}
			}
		}
	}
	if targets < 20 || functions < 4 {
		t.Errorf("only %d targets and %d functions are named", targets, functions)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// testSources are all tests of the project in one text.
func testSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		raw, err := os.ReadFile(path)
		all.Write(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
