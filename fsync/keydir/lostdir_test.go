package keydir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/require"
)

// One of the directories goes and comes back empty, as a stock master makes it when it starts: no key has been deleted,
// and consensus puts them all back.
func TestLostDirectory_KeysRestored(t *testing.T) {
	k := keyTexts()
	want := files{"minions/a": k[0], "minions/b": k[1], "minions_pre/c": k[2]}
	remove := func(t *testing.T, n *testNode, again bool) {
		t.Helper()
		for _, p := range []place{acceptedDir, pendingDir} {
			dir := n.path(p, ".")
			// at once: what is removed file by file comes back meanwhile
			require.NoError(t, os.Rename(dir, filepath.Join(t.TempDir(), "away")))
			if again {
				if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) { // the node may be quicker
					t.Fatal(err)
				}
			}
		}
	}
	for name, lose := range map[string]func(*testing.T, *testNode){
		"gone":          func(t *testing.T, n *testNode) { remove(t, n, false) },
		"gone and made": func(t *testing.T, n *testNode) { remove(t, n, true) },
		"gone, made later": func(t *testing.T, n *testNode) {
			remove(t, n, false)
			_ = os.Mkdir(n.path(acceptedDir, "."), 0o700) // it may be quicker
		},
		"while down":          func(t *testing.T, n *testNode) { n.stop(); remove(t, n, false); n.start() },
		"while down and made": func(t *testing.T, n *testNode) { n.stop(); remove(t, n, true); n.start() },
	} {
		t.Run(name, func(t *testing.T) {
			_, m1, m2 := pair(t)
			m1.put(acceptedDir, "a", k[0])
			m1.put(acceptedDir, "b", k[1])
			m1.put(pendingDir, "c", k[2])
			await(t, want, m1, m2)
			lose(t, m2)
			m1.put(pendingDir, "look", k[3]) // makes it look
			want := files{"minions/a": k[0], "minions/b": k[1], "minions_pre/c": k[2], "minions_pre/look": k[3]}
			await(t, want, m1, m2)
			// And an edit is one again.
			m2.remove(pendingDir, "look")
			delete(want, "minions_pre/look")
			await(t, want, m1, m2)
		})
	}
}

// A base of a version that did not note its directories: one that is missing is still not emptied.
func TestLostDirectory_OlderBase(t *testing.T) {
	k := keyTexts()
	_, m1, m2 := pair(t)
	m1.put(acceptedDir, "a", k[0])
	await(t, files{"minions/a": k[0]}, m1, m2)
	m2.stop()
	dir := m2.state
	b, err := loadBase(dir)
	if err != nil || b == nil || b.Dirs["minions"] == "" {
		t.Fatalf("base %+v, %v", b, err)
	}
	b.Dirs = nil
	require.NoError(t, saveBase(dir, b))
	require.NoError(t, os.RemoveAll(m2.path(acceptedDir, ".")))
	m2.start()
	await(t, files{"minions/a": k[0]}, m1, m2)
}
