package keydir

import (
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// A node takes a copy of shared directories home: what consensus decided meanwhile is written there, what was edited in
// the copy is proposed, and nothing comes back.
func TestTakeHome(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	nodes := sharing(t, log, "m1", "m2")
	nodes[0].put(acceptedDir, "old", k[0])
	nodes[0].put(pendingDir, "new", k[1])
	nodes[0].put(acceptedDir, "gone", k[2])
	await(t, files{"minions/old": k[0], "minions_pre/new": k[1], "minions/gone": k[2]}, nodes...)
	var base SharedBase
	patience.WaitFor(t, "a base that knows all keys", func() (ok bool) {
		var err error
		if base, err = ReadSharedBase(nodes[0].pki); err != nil {
			t.Fatal(err)
		}
		return base.b != nil && len(base.b.Keys) == 3
	})
	nodes[1].stop()
	home := newTestNode(t, "m2", log)
	copyKeys(t, nodes[0].pki, home.pki)
	require.NoError(t, base.TakeHome(home.pki, home.state, home.id))
	nodes[0].remove(acceptedDir, "gone") // decided before the copy is in use
	await(t, files{"minions/old": k[0], "minions_pre/new": k[1]}, nodes[0])
	home.move(pendingDir, acceptedDir, "new") // edited in the copy
	home.start()
	await(t, files{"minions/old": k[0], "minions/new": k[1]}, nodes[0], home)
	if entries, _ := os.ReadDir(filepath.Join(home.state, "keys-aside")); len(entries) > 0 {
		t.Errorf("%d files put aside", len(entries))
	}
}

func copyKeys(t *testing.T, from, to string) {
	t.Helper()
	for p := range places {
		names, err := filepath.Glob(filepath.Join(from, p.String(), "*"))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(to, p.String()), 0o755))
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(filepath.Join(to, p.String(), filepath.Base(name)), text, 0o644)
			}
			require.NoError(t, err)
		}
	}
}

func TestPrivate(t *testing.T) {
	for path, want := range map[string]bool{
		"minions/web1": false, "master.pem": false, "minions/.key_cache": true, ".saltclusterd-keys-lock": true,
		".saltclusterd-keybase": true, ".saltclusterd-share.m1": true, "minions/.saltclusterd-m1": true, "minions": false,
	} {
		if got := Private(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}
