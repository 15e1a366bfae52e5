//go:build integration

package packages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

// build makes packages of a version into a directory, from the sources at root.
func build(ctx context.Context, t *testing.T, root, out, version string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./packaging/build", "-out", out, "-version", version},
		args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", version, err, tail(string(text)))
	}
}

// moduleRoot is where the sources are.
func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	return root
}

// The same sources give the same bytes, wherever they are.
func TestReproducible(t *testing.T) {
	needLong(t)
	root, elsewhere := moduleRoot(t), filepath.Join(t.TempDir(), "else", "where")
	require.NoError(t, os.MkdirAll(elsewhere, 0o755))
	// Sources only, with other times.
	pipe := `git ls-files -co --exclude-standard -z | tar --null -T - --ignore-failed-read -cf - | tar -xmf - -C "$1" && mkdir -p "$1/bin" && cp -r bin/nfpm-* "$1/bin/"`
	first, second := t.TempDir(), t.TempDir()
	build(t.Context(), t, root, first, "0.0.1~a")
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", pipe, "sh", elsewhere)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	build(t.Context(), t, elsewhere, second, "0.0.1~a")
	names, err := os.ReadDir(first)
	if err != nil || len(names) != 9 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, n := range names {
		a, errA := os.ReadFile(filepath.Join(first, n.Name()))
		b, errB := os.ReadFile(filepath.Join(second, n.Name()))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: %x %x, %v %v", n.Name(), sha256.Sum256(a), sha256.Sum256(b), errA, errB)
		}
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = first
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != 8 {
		t.Errorf("%v\n%s", err, out)
	}
}
