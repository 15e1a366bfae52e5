package tree

import (
	"maps"
	"slices"
	"testing"

	"saltclusterd/integration/require"
)

func TestReplace(t *testing.T) {
	m := Memory{}
	file := func(name, content string) Entry {
		return Entry{Name: name, Type: File, Mode: 0o644,
			Chunks: []Chunk{{Hash: Sum([]byte(content)), Size: uint32(len(content))}}}
	}
	put := func(entries ...Entry) Hash {
		h, err := m.PutDir(entries)
		require.NoError(t, err)
		return h
	}
	inner := put(file("a", "1"), file("b", "2"))
	top := put(Entry{Name: "d", Type: Dir, Mode: 0o755, Object: inner}, file("e", "3"), file("f", "4"))
	other := file("old name", "5")
	got, err := Replace(m, m, top, map[string]*Entry{"d/a": nil, "d/b": &other, "e": nil, "missing": &other,
		"f/below": &other, "d/missing/too": nil})
	require.NoError(t, err)
	paths := map[string]Hash{}
	require.NoError(t, Walk(m, got, func(path string, e *Entry) error { paths[path] = e.Identity(); return nil }))
	if want := []string{"d", "d/b", "f"}; !slices.Equal(slices.Sorted(maps.Keys(paths)), want) ||
		paths["d/b"] != other.Identity() {
		t.Errorf("%v", paths)
	}
	if same, err := Replace(m, m, top, nil); err != nil || same != top {
		t.Errorf("%v, %v", same, err)
	}
	if same, err := Replace(m, m, top, map[string]*Entry{"missing": nil}); err != nil || same != top {
		t.Errorf("%v, %v", same, err)
	}
}
