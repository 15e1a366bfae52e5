package integration

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/guides"
	"saltclusterd/integration/require"
)

var (
	link     = regexp.MustCompile(`\]\(([^)#: ]*)(?:#([^)]*))?\)`)
	testName = regexp.MustCompile("`(?:([a-z0-9]+)\\.)?((?:Test|Fuzz)[A-Z][A-Za-z0-9_]+)(?:/([^`]+))?`")
	scenario = regexp.MustCompile("scenarios? ((?:(?:, | and )?`[^`]+`)+)")
	quoted   = regexp.MustCompile("`([^`]+)`")
	// functionName finds names of two words, as most functions of a package have.
	functionName = regexp.MustCompile(`\b[a-z]+[A-Z]\w*\b`)
	codeName     = regexp.MustCompile("`([A-Za-z]\\w*(?:\\.[A-Za-z]\\w*)*)`")
)

// What the guides refer to is there: other pages and their sections, and the tests which show what is said.
func TestGuides_References(t *testing.T) {
	sources := testSources(t)
	pages, err := guides.Read("..")
	require.NoError(t, err)
	tests := 0
	for _, p := range pages {
		page, raw := filepath.Join("..", p.Name), p.Text()
		checkLinks(t, page, raw)
		if p.Name == "CHANGELOG.md" {
			continue // the tests that it names were there once
		}
		for _, m := range testName.FindAllStringSubmatch(raw, -1) {
			tests++
			where, name, part := m[1], m[2], m[3]
			switch {
			case strings.HasSuffix(name, "_"): // the beginning of several
			case !sources.have(where, "func "+name+"("):
				t.Errorf("%s: there is no %s in %s", page, name, cmp.Or(where, "any package"))
			case part != "" && !sources.have("", `"`+part+`"`) && !sources.have("", `"`+strings.ReplaceAll(part, "_", " ")+`"`):
				t.Errorf("%s: %s has no part %q", page, name, part)
			}
		}
		for _, m := range scenario.FindAllStringSubmatch(raw, -1) {
			for _, q := range quoted.FindAllStringSubmatch(m[1], -1) {
				if !strings.HasPrefix(q[1], "Test") && !sources.have("scenario", `"`+q[1]+`"`) {
					t.Errorf("%s: there is no scenario %q", page, q[1])
				}
			}
		}
	}
	if tests == 0 {
		t.Error("no test is referred to")
	}
}

// What developers read refers to pages that are there, too.
func TestDeveloperPages_References(t *testing.T) {
	for _, page := range findPages(t, "../docs/dev", "*.md") {
		checkLinks(t, page, text(t, page))
	}
}

// What the design of a package names is in the code: files, types, functions, constants and tests. So are the functions
// in the pictures of the architecture.
func TestDesigns_References(t *testing.T) {
	declared := map[string]bool{}
	for _, source := range findPages(t, "..", "*.go") {
		declared[strings.TrimSuffix(filepath.Base(source), ".go")] = true
		for _, name := range strings.FieldsFunc(text(t, source), isNoWord) {
			declared[name] = true
		}
	}
	for _, page := range findPages(t, "..", "DESIGN.md") {
		for _, m := range codeName.FindAllStringSubmatch(text(t, page), -1) {
			for _, name := range strings.Split(strings.TrimSuffix(m[1], ".go"), ".") {
				if !declared[name] {
					t.Errorf("%s: `%s`: the code has no %s", page, m[1], name)
				}
			}
		}
	}
	const pictures = "../docs/contributing/architecture.md"
	for _, name := range functionName.FindAllString(text(t, pictures), -1) {
		if !declared[name] {
			t.Errorf("%s: the code has no %s", pictures, name)
		}
	}
}

// A reader follows a return through at most 20 functions before another goroutine has it: each line of the picture has
// one more than arrows.
func TestArchitecture_HopsOfAReturn(t *testing.T) {
	_, picture, _ := strings.Cut(text(t, "../docs/contributing/architecture.md"), "on the node that receives the return\n")
	for i, part := range strings.Split(strings.Split(picture, "\n\n")[0], "══") {
		if hops := strings.Count(part, "\n") + strings.Count(part, "→"); hops > 20 || i == 0 && hops < 10 {
			t.Errorf("%d hops:\n%s", hops, part)
		}
	}
}

// goFile finds the name of a Go file, with the directories before it. One with a capital letter stands for any.
var goFile = regexp.MustCompile(`(?:^|[^\w/.:-])((?:[\w-]+/)*[a-z0-9_]+\.go)\b`)

// The Go files that pages and comments name are there. Without a directory a comment names a file of its own package.
func TestReferences_GoFiles(t *testing.T) {
	sources := findPages(t, "..", "*.go")
	have := func(name string) bool {
		return slices.ContainsFunc(sources, func(s string) bool { return strings.HasSuffix(s, "/"+name) })
	}
	for _, page := range findPages(t, "..", "*.md") {
		for _, m := range goFile.FindAllStringSubmatch(text(t, page), -1) {
			if !have(m[1]) {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
	}
	for _, source := range sources {
		for line := range strings.Lines(text(t, source)) {
			_, comment, _ := strings.Cut(line, "// ")
			if !strings.Contains(comment, ".go") {
				continue
			}
			for _, m := range goFile.FindAllStringSubmatch(comment, -1) {
				name := m[1]
				if !strings.Contains(name, "/") {
					name = strings.TrimPrefix(filepath.Join(filepath.Dir(source), name), "../")
				}
				if !have(name) {
					t.Errorf("%s: there is no %s", source, name)
				}
			}
		}
	}
}

// isNoWord says whether a rune is between words. An expression would take a hundred times as long, for all code there is.
func isNoWord(r rune) bool {
	return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// findPages returns the files below a directory whose names match.
func findPages(t *testing.T, dir, pattern string) (pages []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if is, err := filepath.Match(pattern, d.Name()); !is || d.IsDir() {
			return err
		}
		pages = append(pages, path)
		return nil
	})
	require.NoError(t, err)
	return pages
}

// checkLinks fails when a page links to a file or a section that is not there.
func checkLinks(t *testing.T, page, raw string) {
	t.Helper()
	for _, m := range link.FindAllStringSubmatch(raw, -1) {
		target := filepath.Join(filepath.Dir(page), m[1])
		if m[1] == "" {
			target = page
		}
		if _, err := os.Stat(target); err != nil {
			t.Errorf("%s: %v", page, err)
		} else if m[2] != "" && !slices.Contains(anchors(text(t, target)), m[2]) {
			t.Errorf("%s: %s has no section %s", page, target, m[2])
		}
	}
}

var (
	headline = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	unlinked = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are the fragments by which the sections of a page are linked to, as GitHub makes them of their headings.
func anchors(page string) (all []string) {
	for _, m := range headline.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// Each promise, those of the README and all others, names where it ends and the tests that show it.
func TestPromises_HaveLimitsAndTests(t *testing.T) {
	for page, want := range map[string]int{"../README.md": 5, "../docs/reference/promises.md": 8} {
		_, table, _ := strings.Cut(text(t, page), "| promise | limits | tests |\n|---|---|---|\n")
		table, _, _ = strings.Cut(table, "\n\n")
		rows := strings.Split(table, "\n")
		if len(rows) < want {
			t.Errorf("%s: the table of promises has %d rows", page, len(rows))
		}
		for _, row := range rows {
			cells := strings.Split(strings.Trim(row, "| "), " | ")
			if len(cells) != 3 || !strings.Contains(cells[0], "**") || !testName.MatchString(cells[2]) {
				t.Errorf("%s: not a promise with its limits and tests: %s", page, row)
			}
		}
	}
}

// targetRun is what a recipe of the Makefile has go test run.
var targetRun = regexp.MustCompile(`-run ['"]([^'"]+)['"]`)

// longTarget tells whether a target of the Makefile runs a test with what takes long; target "" is any.
func longTarget(makefile, target, name string) bool {
	for rule := range strings.SplitSeq(strings.ReplaceAll(makefile, "$$", "$"), "\n\n") {
		if !strings.Contains(rule, "SALTCLUSTER_LONG=1") || !strings.Contains("\n"+rule, "\n"+target+":") && target != "" {
			continue
		}
		for _, m := range targetRun.FindAllStringSubmatch(rule, -1) {
			if match, err := regexp.MatchString(m[1], name); err == nil && match {
				return true
			}
		}
	}
	return false
}

var scenarioTest = regexp.MustCompile(`(?ms)^func (Test\w+)\(t \*testing\.T\) \{\n.*?^\}`)

// What make test skips of a scenario, because it takes long, is run by another target.
func TestLongScenariosHaveATarget(t *testing.T) {
	makefile, long := text(t, "../Makefile"), 0
	for _, m := range scenarioTest.FindAllStringSubmatch(testSources(t)["scenario"], -1) {
		if !strings.Contains(m[0], "SALTCLUSTER_LONG") {
			continue
		}
		if long++; !longTarget(makefile, "", m[1]) {
			t.Errorf("no target of the Makefile runs all of %s", m[1])
		}
	}
	if long < 20 {
		t.Errorf("only %d scenarios take long", long)
	}
}

// A test that make test skips, because it takes long, is named beside the target of make that runs it.
func TestGuides_LongTestsNameTheirTarget(t *testing.T) {
	scenarios, makefile := testSources(t)["scenario"], text(t, "../Makefile")
	pages, err := guides.Read("..")
	require.NoError(t, err)
	long := 0
	for _, p := range pages {
		for row := range strings.Lines(p.Text()) {
			if !strings.HasPrefix(row, "|") {
				continue
			}
			for _, m := range testName.FindAllStringSubmatch(row, -1) {
				_, body, _ := strings.Cut(scenarios, "\nfunc "+m[2]+"(")
				body, _, _ = strings.Cut(body, "\n}\n")
				if m[1] != "" || !strings.Contains(body, "\n\tif os.Getenv(\"SALTCLUSTER_LONG\") == \"\"") { // not for a part
					continue
				}
				long++
				if !slices.ContainsFunc(quoted.FindAllStringSubmatch(row, -1), func(q []string) bool {
					target, ok := strings.CutPrefix(q[1], "make ")
					return ok && longTarget(makefile, target, m[2])
				}) {
					t.Errorf("%s names %s, which make test skips, and no target that runs it: %s", p.Name, m[2], row)
				}
			}
		}
	}
	if long < 5 {
		t.Errorf("only %d tests that take long are named", long)
	}
}

// Targets of make and functions of the runners that the guides name are there. Verbs and flags: cmd/saltclusterctl.
func TestGuidesNameTargetsAndRunners(t *testing.T) {
	pages, err := guides.Read("..")
	require.NoError(t, err)
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
	require.NoError(t, err)
	return string(raw)
}

// tests are the sources of all tests of the project, by the name of their directory.
type tests map[string]string

// have says whether a text stands in the tests of a directory, or of any.
func (s tests) have(dir, text string) bool {
	for name, source := range s {
		if (dir == "" || dir == name) && strings.Contains(source, text) {
			return true
		}
	}
	return false
}

func testSources(t *testing.T) tests {
	t.Helper()
	all := tests{}
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
		all[filepath.Base(filepath.Dir(path))] += string(raw)
		return err
	})
	require.NoError(t, err)
	return all
}
