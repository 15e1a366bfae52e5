package config

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"saltclusterd/integration/require"
)

var update = flag.Bool("update", false, "write golden files")

func TestDefaultFile_Packaged(t *testing.T) {
	isTheTable(t, "../../../packaging/saltclusterd.conf", DefaultFile())
}

func TestDocumentedOptionsAreTheTable(t *testing.T) {
	isTheTable(t, "../../../docs/reference/configuration.md", Reference())
}

func isTheTable(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, want, 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the option table says; run: go test ./cmd/saltclusterd/config -update", path)
	}
}
