package keydir

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func logged(n *testNode, text string) bool { return strings.Contains(n.logs.String(), text) }

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func differ(a, b, name string) bool {
	x, _ := os.ReadFile(filepath.Join(a, name))
	y, _ := os.ReadFile(filepath.Join(b, name))
	return !bytes.Equal(x, y)
}
