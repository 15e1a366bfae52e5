package mmapkeys

import (
	"os"
	"testing"

	"saltclusterd/integration/require"
)

// FuzzBank gives the files any content: they are read, repaired and written to without harm, and what is written then
// is found.
func FuzzBank(f *testing.F) {
	dir, e := golden(f, "crowded")
	part := func(suffix string) []byte {
		b, err := os.ReadFile(dir + "/" + Keys + suffix)
		require.NoError(f, err)
		return b
	}
	f.Add(part(""), part(".heap"), part(".heap.1"), part(".roster"))
	f.Fuzz(func(t *testing.T, index, heap, second, roster []byte) {
		b := bank(t, quick(t), Keys, e.geometry)
		fixed := make([]byte, e.geometry.indexSize())
		copy(fixed, index)
		for suffix, text := range map[string][]byte{"": fixed, ".heap": heap, ".heap.1": second, ".roster": roster} {
			require.NoError(t, os.WriteFile(b.path+suffix, text, 0o600))
		}
		if _, err := b.Read(t.Context(), nil, true); err != nil {
			return // no header of ours
		}
		errs := b.Apply(t.Context(), []Change{{Key: "fuzz", Value: []byte("value")}, {Key: "k3"}})
		c, err := b.Read(t.Context(), nil, false)
		require.NoError(t, err)
		if got := c.Entries["fuzz"]; errs[0] == nil && (string(got.Value) != "value" || !got.Listed) {
			t.Errorf("written, and not found: %+v", got)
		}
	})
}

// quick is a directory whose files need no disk, where there is such.
func quick(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "mmapkeys-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
