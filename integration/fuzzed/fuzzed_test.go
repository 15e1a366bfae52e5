//go:build !race

package fuzzed

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every function that takes bytes apart is tried with hostile ones. What counts as such a function is seen in the
// source:
//
//   - its name begins with one of decoderNames and it is given bytes ([]byte, io.Reader, *bufio.Reader), or
//   - it calls one of decoderCalls, which take numbers, keys or documents out of bytes.
//
// It is tried when a fuzz target of any package mentions it, or mentions what mentions it, and so on; a method of an
// interface of ours stands for all methods of that name. So a decoder that is found here has certainly no target, while
// one whose target comes to it only with what somebody else has checked is not found: that is for whoever writes the
// target to see.

var decoderNames = regexp.MustCompile(`^(?i:parse|decode|unmarshal|read|import|restore|split|cut|peek|walk|recv|receive)`)

var decoderCalls = regexp.MustCompile(`^(json\.(Unmarshal|NewDecoder)|yaml\.(Unmarshal|NewDecoder)|gob\.NewDecoder|xml\.Unmarshal` +
	`|binary\.(Read|Uvarint|ReadUvarint|BigEndian\.Uint|LittleEndian\.Uint)|x509\.Parse|pem\.Decode|msgp\.Read|base64\..*Decode|hex\.Decode)`)

// untried are decoders without a target, with the reason.
var untried = map[string]string{
	"(*saltclusterd/cmd/saltclusterctl/console.Env).toNode": "what this program itself has just encoded",
	"saltclusterd/cmd/saltclusterctl/doctor.Certificate":    "this node's own; FuzzPeerCert tries those of others",
	"(*saltclusterd/consensus/state.Secret).UnmarshalJSON":  "refuses whatever it is given",
	"(*saltclusterd/sidecar/upstream.SubClient).Import":     "takes a descriptor along with what FuzzDecodeClient tries",
}

// notOurs are directories whose code runs on no master: tools, and packages for tests.
var notOurs = regexp.MustCompile(`^saltclusterd/(integration|packaging)(/|$)|/(mastertest|replicatest)$`)

func TestEveryDecoderIsFuzzed(t *testing.T) {
	p := loadProgram(t)
	targets := 0
	var todo []string
	for name, fn := range p.functions {
		if fn.test && strings.HasPrefix(fn.name, "Fuzz") {
			todo = append(todo, name)
			targets++
		}
	}
	if targets < 70 {
		t.Fatalf("only %d fuzz targets were found", targets)
	}
	tried := p.reachable(todo)
	seen := 0
	for _, name := range p.sorted() {
		fn := p.functions[name]
		if fn.decoder == "" {
			continue
		}
		seen++
		switch reason, excused := untried[name]; {
		case !tried[name] && !excused:
			t.Errorf("%s: %s %s, and no fuzz target tries it", fn.at, name, fn.decoder)
		case tried[name] && excused:
			t.Errorf("%s is tried; take it out of the list (%s)", name, reason)
		}
	}
	for name := range untried {
		if fn := p.functions[name]; fn == nil || fn.decoder == "" {
			t.Errorf("%s is excused, but there is no such decoder", name)
		}
	}
	t.Logf("%d decoders, %d of them without a target; %d targets", seen, len(untried), targets)
}

// reachable is all that functions mention, and what that mentions.
func (p *program) reachable(todo []string) map[string]bool {
	seen := map[string]bool{}
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		fn := p.functions[name]
		if fn == nil || seen[name] {
			continue
		}
		seen[name] = true
		todo = append(todo, p.assigned[name]...)
		for m := range fn.mentions {
			todo = append(todo, m)
		}
		for m := range fn.asks {
			todo = append(todo, p.methods[m]...)
		}
	}
	return seen
}

func (p *program) sorted() (names []string) {
	for name := range p.functions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// decodes says why a function is a decoder; empty: it is none.
func decodes(f *ast.FuncDecl) (why string) {
	if decoderNames.MatchString(f.Name.Name) && givenBytes(f) {
		return "is given bytes and named as if it took them apart"
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && why == "" {
			if name := selector(call.Fun); decoderCalls.MatchString(name) {
				why = "calls " + name
			}
		}
		return true
	})
	return why
}

func givenBytes(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		switch types.ExprString(p.Type) {
		case "[]byte", "io.Reader", "*bufio.Reader":
			return true
		}
		return false
	})
}

// selector is a.b.c as text, empty for anything else.
func selector(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if x := selector(e.X); x != "" {
			return x + "." + e.Sel.Name
		}
	case *ast.IndexExpr:
		return selector(e.X)
	}
	return ""
}
