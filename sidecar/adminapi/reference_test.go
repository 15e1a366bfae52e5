package adminapi

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

var update = flag.Bool("update", false, "write docs/reference/json.md anew")

const jsonHead = `# JSON of the commands

Made from the types of the admin API (` + "`go test ./sidecar/adminapi -run Reference -update`" + `).

Every command of saltclusterctl prints JSON with ` + "`--out json`" + `. These are the fields that scripts use most. Before version 1.0 fields may be
renamed with a note in the changelog; after it they are only added. A field marked *optional* is left out when it is empty. Messages are for
people and may change; use levels, states and exit codes ([command line](cli.md#exit-codes)).

<!-- not run: a reference -->

    saltclusterctl status --out json | jq -r '.problems[] | select(.level == "fail") | .message'
    saltclusterctl members --out json | jq -r '.members[].id'
`

// printed are the commands and the types that they print as JSON.
var printed = []struct{ command, typ string }{
	{"status", "Status"}, {"members", "Members"}, {"ring_info", "RingInfo"}, {"minions connections", "Minions"}, {"minions list", "Presence"},
	{"jobs list", "JobList"}, {"jobs show", "Job"}, {"events", "HandledEvents"}, {"keys list", "Keys"}, {"keys held", "HeldKeys"},
	{"wall", "Wall"}, {"roots status", "RootsStatus"}, {"returns list", "UnansweredReturns"}, {"token list", "Tokens"},
	{"verify", "Verification"}, {"drain", "Outcome"},
}

// TestReference_Current: docs/reference/json.md has the fields of the types.
func TestReference_Current(t *testing.T) {
	const path = "../../docs/reference/json.md"
	want := jsonReference(t)
	if *update {
		require.NoError(t, os.WriteFile(path, want, 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	if !bytes.Equal(have, want) {
		t.Errorf("%s is not what the types say; run: go test ./sidecar/adminapi -run Reference -update", path)
	}
}

// jsonReference renders the types: a section for each command, and one for each type that these contain.
func jsonReference(t *testing.T) []byte {
	t.Helper()
	types := map[string]ast.Expr{}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				types[spec.Name.Name] = spec.Type
			}
			return true
		})
	}
	r := &renderer{types: types, seen: map[string]bool{}}
	r.out.WriteString(jsonHead)
	for _, p := range printed {
		s, ok := types[p.typ].(*ast.StructType)
		if !ok {
			t.Fatalf("there is no type %s", p.typ)
		}
		fmt.Fprintf(&r.out, "\n## %s\n", p.command)
		r.fields(s)
	}
	r.out.WriteString("\n## Parts\n")
	for i := 0; i < len(r.parts); i++ { // rendering adds to them
		fmt.Fprintf(&r.out, "\n### %s\n", r.parts[i])
		r.fields(types[r.parts[i]].(*ast.StructType))
	}
	return r.out.Bytes()
}

type renderer struct {
	out   bytes.Buffer
	types map[string]ast.Expr
	seen  map[string]bool
	parts []string // types that others contain, in the order in which they were met
}

func (r *renderer) fields(s *ast.StructType) {
	r.out.WriteString("\n| field | type | meaning |\n|---|---|---|\n")
	for _, f := range s.Fields.List {
		if f.Tag == nil {
			continue
		}
		raw, err := strconv.Unquote(f.Tag.Value)
		name, rest, _ := strings.Cut(reflect.StructTag(raw).Get("json"), ",")
		if err != nil || name == "" || name == "-" {
			continue
		}
		kind := r.kind(f.Type)
		if strings.Contains(rest, "omitempty") || strings.Contains(rest, "omitzero") {
			kind += ", optional"
		}
		text := strings.TrimSpace(strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " "))
		fmt.Fprintf(&r.out, "| `%s` | %s | %s |\n", name, kind, strings.NewReplacer("nil:", "left out:", "|", `\|`, "<", `\<`, "*", `\*`).Replace(text))
	}
}

// kind is a Go type in words of JSON.
func (r *renderer) kind(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return r.kind(e.X)
	case *ast.ArrayType:
		return "list of " + r.kind(e.Elt)
	case *ast.MapType:
		return "map of " + r.kind(e.Value)
	case *ast.SelectorExpr:
		return map[string]string{"Time": "time (RFC 3339)", "Duration": "nanoseconds"}[e.Sel.Name]
	case *ast.Ident:
		switch of := r.types[e.Name].(type) {
		case *ast.StructType:
			if !r.seen[e.Name] {
				r.seen[e.Name] = true
				r.parts = append(r.parts, e.Name)
			}
			return "[" + e.Name + "](#" + strings.ToLower(e.Name) + ")"
		case ast.Expr:
			return r.kind(of)
		}
		switch {
		case e.Name == "string":
			return "text"
		case e.Name == "bool":
			return "true or false"
		case e.Name == "any":
			return "anything"
		}
		return "number"
	}
	return "object"
}
