package localmaster

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
)

func TestReadSome(t *testing.T) {
	dir := t.TempDir()
	small, large, pipe := filepath.Join(dir, "small"), filepath.Join(dir, "large"), filepath.Join(dir, "pipe")
	for path, size := range map[string]int{small: 10, large: 11} {
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
	}
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	if b, err := readSome(small, 10); len(b) != 10 || err != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	for _, path := range []string{large, pipe, dir, filepath.Join(dir, "none")} {
		if _, err := readSome(path, 10); err == nil {
			t.Errorf("%s is read", path)
		}
	}
}
