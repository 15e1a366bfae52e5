// Package integration holds what looks at the project as a whole.
package integration

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

const module = "saltclusterd/"

// leaves may be imported by every package; they import no package of ours but leaves.
var leaves = []string{"backoff", "durable", "durable/torn", "metric", "nowait", "paths", "signal", "gossip/node",
	"consensus/state", "sidecar/adminapi"}

// engines never import each other: they meet in the capabilities below cmd/saltclusterd.
var engines = []string{"sidecar", "consensus", "fsync"}

// shared are packages below cmd/saltclusterd that every capability may import.
var shared = []string{
	"cmd/saltclusterd/config", "cmd/saltclusterd/membership", "cmd/saltclusterd/peerrpc", "cmd/saltclusterd/wording",
}

// forTests are what packages for tests may import as well, those whose name ends in test.
var forTests = []string{"integration/check", "integration/patience", "integration/require"}

type pkg struct {
	ImportPath string
	Imports    []string
}

func under(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func leaf(path string) bool {
	for _, l := range leaves {
		if path == l {
			return true
		}
	}
	return false
}

// forbidden says why from must not import to, empty when it may.
func forbidden(from, to string) string {
	if why := forbiddenInDaemon(from, to); why != "" {
		return why
	}
	if under(from, "cmd") || under(from, "integration") {
		return ""
	}
	switch {
	case strings.HasSuffix(from, "test") && slices.Contains(forTests, to):
		return ""
	case under(to, "cmd"), under(to, "integration"):
		return "commands and the lab stand on top of everything"
	case leaf(from) && !leaf(to):
		return "a leaf imports nothing"
	case leaf(to):
		return ""
	}
	for _, e := range engines {
		for _, other := range engines {
			if e != other && under(from, e) && under(to, other) {
				return e + " and " + other + " meet below cmd/saltclusterd only"
			}
		}
		if under(from, "gossip") && under(to, e) {
			return "gossip stands below"
		}
		if under(from, e) && e != "consensus" && under(to, "gossip") {
			return e + " reaches peers through an interface"
		}
	}
	return ""
}

// forbiddenInDaemon is forbidden between the packages below cmd/saltclusterd.
func forbiddenInDaemon(from, to string) string {
	const program, root = "cmd/saltclusterd", "cmd/saltclusterd/daemon"
	switch {
	case !under(from, program) || !under(to, program) || from == program || from == root:
		return ""
	case to == root:
		return "the daemon composes capabilities; they do not know it"
	case slices.Contains(shared, to):
		return ""
	}
	return "capabilities do not know each other: declare an interface for what is needed"
}

func TestImportArrowsPointDown(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	require.NoError(t, err, "go list")
	seen := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seen++
		from := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			if why := forbidden(from, to); why != "" {
				t.Errorf("%s imports %s: %s", from, to, why)
			}
		}
	}
	if seen < 20 {
		t.Fatalf("only %d packages found", seen)
	}
}
