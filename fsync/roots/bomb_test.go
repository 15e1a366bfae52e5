package roots

import (
	"strings"
	"testing"

	"saltclusterd/fsync/tree"
	"saltclusterd/integration/require"
)

// What a hostile member proposes for a tree: a hundred small objects that name more paths than there are atoms, or no
// objects at all. Nobody makes them, and an operator goes back.
func TestHostileTree(t *testing.T) {
	m := tree.Memory{}
	dir := func(entries ...tree.Entry) tree.Hash {
		h, err := m.PutDir(entries)
		require.NoError(t, err)
		return h
	}
	bomb := dir()
	for range 100 {
		bomb = dir(tree.Entry{Name: "a", Type: tree.Dir, Mode: 0o755, Object: bomb},
			tree.Entry{Name: "b", Type: tree.Dir, Mode: 0o755, Object: bomb})
	}
	junk := []byte("not a directory")
	m[tree.Sum(junk)] = junk
	upwards := []byte("SCD\x01\x01\x01\xa4\x03\x02..\x00") // as EncodeDir would not write it
	m[tree.Sum(upwards)] = upwards
	for name, c := range map[string]struct {
		dir  tree.Hash
		says error
	}{
		"endless": {bomb, tree.ErrTooLarge}, "junk": {tree.Sum(junk), tree.ErrMalformed},
		"upwards": {tree.Sum(upwards), tree.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := m.PutRoot(tree.Root{{Kind: tree.FileRoots, Env: "base"}: c.dir})
			require.NoError(t, err)
			w := newWorld(t)
			a, evil := w.start("a"), w.start("evil")
			a.write("top.sls", "base:\n")
			w.await("the first revision", func() bool { return evil.store.Status().Base > 0 })
			require.NoError(t, evil.store.db.putObjects(m))
			head := uint64(w.count())
			if _, err := w.decideOn(evil, Proposal{Parent: head, Root: root, Kind: KindEdit}); err != nil {
				t.Fatal(err)
			}
			w.await("a says why it does not follow", func() bool {
				return strings.Contains(strings.Join(a.store.Status().Problems, "\n"), c.says.Error())
			})
			if !a.has("top.sls", "base:\n") {
				t.Error("what a had is gone")
			}
			if _, err := a.store.Rollback(t.Context(), head); err != nil {
				t.Fatal(err)
			}
			a.write("top.sls", "better:\n")
			w.await("edits arrive again", func() bool { return evil.has("top.sls", "better:\n") })
		})
	}
}
