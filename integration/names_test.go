package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"
	"unicode"

	"saltclusterd/integration/require"
)

// maxBareWords is how many of a hundred functions may have one word as their name. It only shrinks.
// Every declared function and method counts, those that an interface of the standard library names among them, so that
// the number compares with rqlite's 37 and litefs' 39.
const maxBareWords = 33

// isBareWord says whether name has one word: no capital after its first letter, or capitals only.
func isBareWord(name string) bool {
	return name == strings.ToUpper(name) || strings.IndexFunc(name[1:], unicode.IsUpper) < 0
}

func TestFunctionNames(t *testing.T) {
	functions, bare := 0, 0
	walkSources(t, func(dir, path string) {
		if under(dir, "integration") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				functions++
				if isBareWord(f.Name.Name) {
					bare++
				}
			}
		}
	})
	if functions < 1000 {
		t.Fatalf("only %d functions found", functions)
	}
	t.Logf("%d of %d functions have one word as their name", bare, functions)
	if 100*bare > maxBareWords*functions {
		t.Errorf("%.1f %% of the functions have one word as their name, at most %d %%: name new ones verb and object",
			100*float64(bare)/float64(functions), maxBareWords)
	}
}

// declared calls f with each name that file declares and that code may use without a selector.
func declared(file *ast.File, f func(*ast.Ident)) {
	expressions := func(list ...ast.Expr) {
		for _, e := range list {
			if name, ok := e.(*ast.Ident); ok {
				f(name)
			}
		}
	}
	fields := func(lists ...*ast.FieldList) {
		for _, list := range lists {
			if list == nil {
				continue
			}
			for _, field := range list.List {
				for _, name := range field.Names {
					f(name)
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if fields(n.Recv); n.Recv == nil {
				f(n.Name)
			}
		case *ast.FuncType:
			fields(n.TypeParams, n.Params, n.Results)
		case *ast.TypeSpec:
			f(n.Name)
			fields(n.TypeParams)
		case *ast.ValueSpec:
			for _, name := range n.Names {
				f(name)
			}
		case *ast.ImportSpec:
			if n.Name != nil {
				f(n.Name)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				expressions(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				expressions(n.Key, n.Value)
			}
		}
		return true
	})
}

func TestPredeclaredNamesStay(t *testing.T) {
	walkSources(t, func(_, path string) {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		declared(file, func(name *ast.Ident) {
			if types.Universe.Lookup(name.Name) != nil {
				t.Errorf("%s: %s is predeclared: use another name", files.Position(name.Pos()), name.Name)
			}
		})
	})
}
