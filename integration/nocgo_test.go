package integration

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The programs are built without cgo ("make build"), and lose nothing by it: no package in them, ours or another's, has code in C for
// when it may. What would be compiled where cgo is possible is what is asked for here. Go's own three are not used without it.
func TestNothingNeedsC(t *testing.T) {
	own := []string{"net", "os/user", "runtime/cgo"}
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,CgoFiles,CFiles,CXXFiles,SwigFiles", "../cmd/saltclusterd", "../cmd/saltclusterctl")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath                            string
			Standard                              bool
			CgoFiles, CFiles, CXXFiles, SwigFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seen++
		if n := len(p.CgoFiles) + len(p.CFiles) + len(p.CXXFiles) + len(p.SwigFiles); n == 0 || p.Standard && strings.Contains(strings.Join(own, " "), p.ImportPath) {
			continue
		}
		t.Errorf("%s has code in C: %v", p.ImportPath, append(p.CgoFiles, p.CFiles...))
	}
	if seen < 200 {
		t.Fatalf("only %d packages found", seen)
	}
	text, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n\tCGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/saltclusterd ./cmd/saltclusterctl") {
		t.Error("make build does not build the programs without cgo")
	}
}
