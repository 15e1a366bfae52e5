package tree

import (
	"errors"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// A hundred objects of two entries have 2^100 paths.
func TestExtents(t *testing.T) {
	m := Memory{}
	dir := func(entries ...Entry) Hash {
		h, err := m.PutDir(entries)
		require.NoError(t, err)
		return h
	}
	root := func(h Hash) Hash {
		h, err := m.PutRoot(Root{{FileRoots, "base", 0}: h})
		require.NoError(t, err)
		return h
	}
	leaf := dir(Entry{Name: "f", Type: File, Mode: 0o644})
	h := leaf
	var x Extents
	for depth := 1; depth <= 100; depth++ {
		h = dir(Entry{Name: "a", Type: Dir, Mode: 0o755, Object: h}, Entry{Name: "b", Type: Dir, Mode: 0o755, Object: h})
		err := x.Slots(m, root(h))
		if want := depth >= 19; errors.Is(err, ErrTooLarge) != want || err != nil && !want {
			t.Fatalf("%d deep: %v", depth, err)
		}
	}
	check.Equal(t, x.known[leaf], 1, "a directory of one file has")
	deep := leaf
	for range MaxDepth + 1 {
		deep = dir(Entry{Name: "d", Type: Dir, Mode: 0o755, Object: deep})
	}
	check.ErrorIs(t, new(Extents).Slots(m, root(deep)), ErrTooLarge, "too deep")
	check.ErrorIs(t, x.Slots(m, Hash{1}), ErrNoObject, "nothing")
}
