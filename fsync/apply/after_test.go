package apply

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/fsync/scan"
	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
	"saltclusterd/integration/require"
)

// What was written a moment ago is to be read again by the next scan; when that would take long, the moment is waited
// for.
func TestPlacedAMomentAgo(t *testing.T) {
	dir := t.TempDir()
	area, err := OpenArea(t.TempDir(), slot, dir)
	require.NoError(t, err)
	defer area.Close()
	for _, c := range []struct {
		size uint32
		racy bool
	}{{100, true}, {rereadRate / 8, false}} {
		path := filepath.Join(dir, "f")
		require.NoError(t, os.WriteFile(path, make([]byte, c.size), 0o644))
		f, err := os.Open(path)
		require.NoError(t, err)
		st, err := slotfs.StatFile(f)
		_ = f.Close()
		require.NoError(t, err)
		entry := tree.Entry{Name: "f", Type: tree.File, Mode: st.Mode, Chunks: []tree.Chunk{{Size: c.size}}}
		plan := &Plan{Ops: []Op{{Verb: Place, Path: "f", Entry: entry, StageIno: st.Ino, StageMod: st.Mtime}}}
		UntilTelling(t.Context(), plan)
		item := Placed(area, plan)["f"]
		late := !scan.Racy(st.Mtime, time.Now()) // on a busy machine the moment is over before the look
		if item == nil || item.Racy != c.racy && !(c.racy && late) {
			t.Errorf("%d bytes: %+v", c.size, item)
		}
		// Somebody adds to it and gives it the time it had.
		require.NoError(t, errors.Join(os.Truncate(path, int64(c.size)+1),
			os.Chtimes(path, time.Time{}, time.Unix(0, st.Mtime))))
		if item := Placed(area, plan)["f"]; item != nil {
			t.Errorf("%d bytes, edited: %+v", c.size, item)
		}
	}
}
