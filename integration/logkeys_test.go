package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"saltclusterd/integration/require"
)

// logKeys are the keys of log records that docs/dev/glossary.md lists.
func logKeys(t *testing.T) []string {
	t.Helper()
	section := regexp.MustCompile(`(?s)\n## Log keys\n(.*?)(\n## |$)`).FindStringSubmatch(text(t, "../docs/dev/glossary.md"))
	if section == nil {
		t.Fatal("the glossary has no section about log keys")
	}
	var keys []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]*)` \\|").FindAllStringSubmatch(section[1], -1) {
		keys = append(keys, row[1])
	}
	return keys
}

// Keys of log records are those of the glossary: one word for one thing, so that what is searched for is found
// wherever it is logged.
func TestLogKeys(t *testing.T) {
	keys, used := logKeys(t), map[string]string{}
	form := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	walkSources(t, func(dir, path string) {
		if under(dir, "integration") || under(dir, "packaging") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				for _, key := range keysOf(call) {
					used[key] = path
				}
			}
			return true
		})
	})
	for key, path := range used {
		if !slices.Contains(keys, key) {
			t.Errorf("%s logs the key %q: use one of those in docs/dev/glossary.md, or add it there", path, key)
		}
	}
	for _, key := range keys {
		if used[key] == "" || !form.MatchString(key) {
			t.Errorf("the key %q of docs/dev/glossary.md is logged nowhere, or is not in snake_case", key)
		}
	}
	if len(used) < 40 || !slices.IsSorted(keys) {
		t.Errorf("%d keys found, %d listed, which are to be sorted", len(used), len(keys))
	}
}

// firstKey says at which argument the keys of a call begin.
var firstKey = map[string]int{
	"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0, "Log": 3,
	"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2,
}

// keysOf returns the literal keys of a call of a logger.
func keysOf(call *ast.CallExpr) (keys []string) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	first, ok := firstKey[method.Sel.Name]
	if !ok || !isLogger(method.X) {
		return nil
	}
	for i := first; i < len(call.Args); i++ {
		if key, ok := call.Args[i].(*ast.BasicLit); ok && key.Kind == token.STRING {
			if word, err := strconv.Unquote(key.Value); err == nil {
				keys = append(keys, word)
			}
			i++ // its value
		}
	}
	return keys
}

// isLogger says by its name whether an expression is a logger.
func isLogger(x ast.Expr) bool {
	name := ""
	switch x := x.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	case *ast.CallExpr:
		return isLoggerCall(x)
	}
	return slices.Contains([]string{"log", "logger", "Logger", "Log"}, name)
}

// isLoggerCall says whether a call returns a logger: log.With(…), or a method of that name.
func isLoggerCall(x *ast.CallExpr) bool {
	f, ok := x.Fun.(*ast.SelectorExpr)
	return ok && (f.Sel.Name == "logger" || f.Sel.Name == "With" && isLogger(f.X))
}
