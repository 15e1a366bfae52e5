package apply

import (
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/require"
)

// Where nothing can be made, as in a root that belongs to somebody else, there is no area, and it says so.
func TestOpenArea_NotWritable(t *testing.T) {
	state, dir := filepath.Join(t.TempDir(), "state"), t.TempDir()
	for _, path := range []string{state, filepath.Join(dir, InSlot)} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	if a, err := OpenArea(state, slot, dir); err == nil || a != nil {
		t.Errorf("an area %v, error %v", a, err)
	}
}
