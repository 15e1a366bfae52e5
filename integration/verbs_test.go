package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

// The verbs of package admin are answered by every node, and by the daemons that scripts of saltclusterctl make up.
func TestVerbs_Registered(t *testing.T) {
	daemon := text(t, "../cmd/saltclusterd/daemon/verbs.go")
	fakes := text(t, "../sidecar/admin/admintest/admintest.go")
	verbs := 0
	for _, source := range findPages(t, "../sidecar/admin", "*.go") {
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !returnsVerbs(f) {
				continue
			}
			verbs++
			if name := "admin." + f.Name.Name; !strings.Contains(daemon, name+"(") {
				t.Errorf("%s: no node answers these verbs: register %s in cmd/saltclusterd/daemon/verbs.go", source, name)
			}
			if name := "admin." + f.Name.Name; !strings.Contains(fakes, name+")") {
				t.Errorf("%s: no test can make up these verbs: add %s in sidecar/admin/admintest", source, name)
			}
		}
	}
	if verbs < 20 {
		t.Errorf("only %d functions return verbs", verbs)
	}
}

// returnsVerbs says whether a function returns admin.Verbs, in the words of that package.
func returnsVerbs(f *ast.FuncDecl) bool {
	results := f.Type.Results
	if results == nil || len(results.List) != 1 {
		return false
	}
	name, ok := results.List[0].Type.(*ast.Ident)
	return ok && name.Name == "Verbs"
}
