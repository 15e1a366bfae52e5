package rootsadmin

import (
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/require"
)

func TestForgetFileLists(t *testing.T) {
	dir := t.TempDir()
	c := masterConfig(t, dir, "cachedir: DIR/cache\n")
	lists := filepath.Join(dir, "cache/file_lists/roots")
	require.NoError(t, os.MkdirAll(filepath.Join(lists, "x"), 0o755))
	for _, name := range []string{"base.p", "my env.p", ".base.w", "x/base.p"} {
		require.NoError(t, os.WriteFile(filepath.Join(lists, name), nil, 0o600))
	}
	forgotten := false
	r := &Roots{cfg: Config{Master: c, ForgetFiles: func() { forgotten = true }}}
	r.forgetFileLists()
	if !forgotten {
		t.Error("the file server keeps its lists")
	}
	left, err := os.ReadDir(lists)
	if err != nil || len(left) != 2 || left[0].Name() != ".base.w" || left[1].Name() != "x" {
		t.Errorf("left: %v, %v", left, err)
	}
}
