//go:build !race

package fuzzed

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

const module = "saltclusterd/"

// program is every function of ours, tests included, and what each of them mentions.
type program struct {
	fset      *token.FileSet
	importer  types.Importer
	functions map[string]*function // by types.Func.FullName
	methods   map[string][]string  // full names by the bare one
	assigned  map[string][]string  // what is mentioned where variables of packages are set, by their full name
}

type function struct {
	name     string
	at       token.Position
	test     bool
	decoder  string          // why it is one
	mentions map[string]bool // full names
	asks     map[string]bool // bare names of methods of interfaces of ours
}

// listed is a package as "go list" tells it.
type listed struct {
	ImportPath, Dir, Export            string
	GoFiles, TestGoFiles, XTestGoFiles []string
	TestImports, XTestImports          []string
}

func goList(t *testing.T, args ...string) (all []listed) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	out, err := cmd.Output()
	require.NoError(t, err, "go list")
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
}

// loadProgram reads and checks all packages. What they import is known from what the compiler exported; what a test
// lacks of that, because only other tests have it, is passed over.
func loadProgram(t *testing.T) *program {
	t.Helper()
	var ours []listed
	wanted := []string{"-export", "-deps", "-json=ImportPath,Export", module + "..."}
	for _, l := range goList(t, "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,TestImports,XTestImports",
		module+"...") {
		if !notOurs.MatchString(l.ImportPath) {
			ours = append(ours, l)
			wanted = append(append(wanted, l.TestImports...), l.XTestImports...)
		}
	}
	exports := map[string]string{}
	for _, l := range goList(t, wanted...) {
		exports[l.ImportPath] = l.Export
	}
	p := &program{fset: token.NewFileSet(), functions: map[string]*function{}, methods: map[string][]string{},
		assigned: map[string][]string{}}
	p.importer = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("nothing is exported of %s", path)
		}
		return os.Open(exports[path])
	})
	for _, l := range ours {
		if err := errors.Join(p.add(l, l.ImportPath, append(l.GoFiles, l.TestGoFiles...)),
			p.add(l, l.ImportPath+"_test", l.XTestGoFiles)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *program) add(l listed, path string, names []string) error {
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(p.fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: p.importer, Error: func(error) {}}
	_, _ = conf.Check(path, p.fset, files, info)
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Body != nil {
					p.declare(d, info)
				}
			case *ast.GenDecl:
				p.tables(d, info)
			}
		}
	}
	return nil
}

func (p *program) declare(decl *ast.FuncDecl, info *types.Info) {
	obj, ok := info.Defs[decl.Name].(*types.Func)
	if !ok {
		return
	}
	fn := p.function(decl.Name, decl.Body, info)
	if !fn.test {
		fn.decoder = decodes(decl)
	}
	p.functions[obj.FullName()] = fn
	if decl.Recv != nil {
		p.methods[fn.name] = append(p.methods[fn.name], obj.FullName())
	}
}

// tables takes in variables of packages: functions may be in them.
func (p *program) tables(decl *ast.GenDecl, info *types.Info) {
	for _, s := range decl.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for _, name := range v.Names {
			if obj, ok := info.Defs[name].(*types.Var); ok && obj.Pkg() != nil {
				p.functions[fullName(obj)] = p.function(name, v, info)
			}
		}
	}
}

func fullName(v *types.Var) string { return v.Pkg().Path() + "." + v.Name() }

// function notes what a body mentions.
func (p *program) function(name *ast.Ident, body ast.Node, info *types.Info) *function {
	at := p.fset.Position(name.Pos())
	fn := &function{name: name.Name, at: at, test: strings.HasSuffix(at.Filename, "_test.go"), mentions: map[string]bool{},
		asks: map[string]bool{}}
	ast.Inspect(body, func(n ast.Node) bool {
		if set, is := n.(*ast.AssignStmt); is && set.Tok == token.ASSIGN {
			p.noteAssigned(set, info)
		}
		id, ok := n.(*ast.Ident)
		if !ok || info.Uses[id] == nil || info.Uses[id].Pkg() == nil ||
			!strings.HasPrefix(info.Uses[id].Pkg().Path(), module) {
			return true
		}
		switch used := info.Uses[id].(type) {
		case *types.Func:
			used = used.Origin()
			if recv := used.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
				fn.asks[used.Name()] = true
			} else {
				fn.mentions[used.FullName()] = true
			}
		case *types.Var:
			if used.Parent() == used.Pkg().Scope() {
				fn.mentions[fullName(used)] = true
			}
		}
		return true
	})
	return fn
}

// noteAssigned notes functions that are put into a variable of a package. One of a test, set by the tests beside the
// package, is known by its name alone.
func (p *program) noteAssigned(set *ast.AssignStmt, info *types.Info) {
	for _, to := range set.Lhs {
		name := ""
		switch to := to.(type) {
		case *ast.Ident:
			if v, is := info.Uses[to].(*types.Var); is && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
				name = fullName(v)
			}
		case *ast.SelectorExpr:
			if x, is := to.X.(*ast.Ident); is {
				if pkg, is := info.Uses[x].(*types.PkgName); is {
					name = pkg.Imported().Path() + "." + to.Sel.Name
				}
			}
		}
		if !strings.HasPrefix(name, module) {
			continue
		}
		for _, value := range set.Rhs {
			ast.Inspect(value, func(n ast.Node) bool {
				if id, is := n.(*ast.Ident); is {
					if f, is := info.Uses[id].(*types.Func); is {
						p.assigned[name] = append(p.assigned[name], f.Origin().FullName())
					}
				}
				return true
			})
		}
	}
}
