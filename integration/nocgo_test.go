package integration

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

// TestNoCgo holds that the programs, which are built without cgo ("make build"), lose nothing by it: no
// package in them has code in C for a build with cgo. Go's own three packages and purego, which loads libcrypto, have
// a replacement for it.
func TestNoCgo(t *testing.T) {
	own := []string{"net", "os/user", "runtime/cgo", "github.com/ebitengine/purego/internal/cgo"}
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,CgoFiles,CFiles,CXXFiles,SwigFiles",
		"../cmd/saltclusterd", "../cmd/saltclusterctl")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	require.NoError(t, err, "go list")
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
		if n := len(p.CgoFiles) + len(p.CFiles) + len(p.CXXFiles) + len(p.SwigFiles); n == 0 ||
			slices.Contains(own, p.ImportPath) {
			continue
		}
		t.Errorf("%s has code in C: %v", p.ImportPath, append(p.CgoFiles, p.CFiles...))
	}
	if seen < 200 {
		t.Fatalf("only %d packages found", seen)
	}
	text, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	if !strings.Contains(string(text),
		"\n\tCGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/saltclusterd ./cmd/saltclusterctl") {
		t.Error("make build does not build the programs without cgo")
	}
}

// TestStatic holds that only saltclusterd needs a dynamic linker, and not with the tag nolibcrypto.
func TestStatic(t *testing.T) {
	for _, c := range []struct {
		program, tags string
		want          bool
	}{{"saltclusterd", "", true}, {"saltclusterd", "nolibcrypto", false}, {"saltclusterctl", "", false}} {
		cmd := exec.Command("go", "list", "-deps", "-tags", c.tags, "../cmd/"+c.program)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		out, err := cmd.Output()
		require.NoError(t, err, "go list")
		if got := strings.Contains(string(out), "ebitengine/purego"); got != c.want {
			t.Errorf("%s with tags %q: has purego: %t", c.program, c.tags, got)
		}
	}
}
