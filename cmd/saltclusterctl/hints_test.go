package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"saltclusterd/integration/guides"
	"saltclusterd/integration/require"
)

// hintEnd is where a command that a program tells to type ends, and words about it begin.
var hintEnd = regexp.MustCompile(`[,;:(\n]| (?:on|there|here|and|or|to|in|for|is|with|begins|does|has|helps|lists|makes|prints|says|shows)\b`)

// What programs tell to type is there, too: each text of theirs that begins with saltclusterctl.
func TestHintsNameWhatThereIs(t *testing.T) {
	n := 0
	for _, dir := range []string{"cmd", "sidecar", "consensus", "gossip", "fsync"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				lit, ok := node.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil || !strings.HasPrefix(text, "saltclusterctl ") {
					return true
				}
				text = strings.NewReplacer("%s", "NAME", "%d", "1", "%q", "NAME").Replace(text)
				text = text[:len("saltclusterctl ")] + hintEnd.Split(text[len("saltclusterctl "):], 2)[0]
				for _, args := range guides.Arguments(text, "saltclusterctl") {
					if n++; len(args) > 0 && placeholder.MatchString(args[0]) {
						continue
					}
					if err := parses(args); err != nil && !strings.Contains(err.Error(), "needs a value") {
						t.Errorf("%s: %q: %v", path, text, err)
					}
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	if n < 100 {
		t.Errorf("only %d are found", n)
	}
}
