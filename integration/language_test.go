package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/guides"
	"saltclusterd/integration/require"
)

// maxLine is the longest line of a source file, in characters. A line with a string literal may be longer, because a
// text that operators read is found by its words.
const maxLine = 120

func TestLinesFit(t *testing.T) {
	walkSources(t, func(_, path string) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, parser.ParseComments)
		require.NoError(t, err)
		literals := map[int]bool{} // lines that string literals are on
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				for l := files.Position(lit.Pos()).Line; l <= files.Position(lit.End()).Line; l++ {
					literals[l] = true
				}
			}
			return true
		})
		for i, line := range strings.Split(string(text), "\n") {
			if n := len([]rune(line)); n > maxLine && !literals[i+1] && !strings.HasPrefix(line, "//go:") {
				t.Errorf("%s:%d: %d characters, at most %d", path, i+1, n, maxLine)
			}
		}
	})
}

// habits are turns of phrase that a native reader stumbles over. Comments must not have them.
var habits = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"for, where because is meant",
		regexp.MustCompile(`, for (it|they|this|that|these|those|there|its|nobody|everybody|what|which|who|a|the) `)},
	{"a relative clause as the subject", regexp.MustCompile(
		`(^|[.;:] )(Who|Whom|Whoever|What) (is|are|was|has|have|had|does|did|comes?|asks?|may|must|cannot|can) `)},
	{"is no, where is not is meant", regexp.MustCompile(`\b(is|are|was) no (?:more |longer )?[a-z]`)},
	{"an idiom", regexp.MustCompile(`\b(goes on|go on|as ever|by itself|by himself|is let go of)\b`)},
	{"somebody or nobody as an actor", regexp.MustCompile(`\b([Ss]ome|[Nn]o|[Ee]very)body\b`)},
	{"too, or also, at the end", regexp.MustCompile(`, (too|also)[.;,]`)},
}

func TestHabits(t *testing.T) {
	walkSources(t, func(_, path string) {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, group := range file.Comments {
			for _, comment := range group.List {
				for i, line := range strings.Split(comment.Text, "\n") {
					line = strings.TrimSpace(strings.TrimPrefix(line, "//"))
					for _, h := range habits {
						if h.pattern.MatchString(line) {
							t.Errorf("%s:%d: %s: %q; use plain English, as docs/dev/glossary.md has it",
								path, files.Position(comment.Pos()).Line+i, h.name, line)
						}
					}
				}
			}
		}
	})
}

// pageHabits are habits that pages must not have either; the others occur in good English, too often to be looked for.
var pageHabits = []string{"an idiom", "somebody or nobody as an actor", "too, or also, at the end"}

// he is said of people only, and the guides speak of clients, attackers and operators.
var he = regexp.MustCompile(`\b([Hh]e|[Hh]is|[Hh]im|[Hh]imself)\b`)

func TestGuides_Habits(t *testing.T) {
	pages, err := guides.Read("..")
	require.NoError(t, err)
	for _, p := range pages {
		if p.Name == "docs/reference/cli.md" || p.Name == "docs/reference/configuration.md" {
			continue // the words are those of the programs
		}
		for i, line := range strings.Split(p.Prose(), "\n") {
			if he.MatchString(line) {
				t.Errorf("%s:%d: a client or an operator is they: %q", p.Name, i+1, line)
			}
			for _, h := range habits {
				if slices.Contains(pageHabits, h.name) && h.pattern.MatchString(line) {
					t.Errorf("%s:%d: %s: %q", p.Name, i+1, h.name, line)
				}
			}
		}
	}
}
