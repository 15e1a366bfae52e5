package datacache

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// mine writes what a master writes that carries out _mine.
func (n *testNode) mine(id string, mine []byte) {
	n.w.t.Helper()
	n.file(newLayout(Mine, n.master).names(id)[0], mine)
}

// flush removes what a master removes that carries out _mine_flush.
func (n *testNode) flush(id string) {
	n.w.t.Helper()
	require.NoError(n.w.t, os.Remove(filepath.Join(n.master.CacheDir, newLayout(Mine, n.master).names(id)[0])))
}

// A mine is on every master when Spread returns, after which the minion is answered.
func TestSpread_OnEveryMaster(t *testing.T) {
	w, a, b, c := threeOf(t, Mine)
	for _, n := range w.nodes {
		w.poll("peers of "+string(n.id), func() bool {
			peers := n.store.Status().Peers
			for _, p := range peers {
				if p.Err != "" {
					return false
				}
			}
			return len(peers) == 2
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i, n := range []*testNode{a, b, c} {
		id := string(n.id) + "-minion"
		w.setKey(id, "k")
		for _, mine := range [][]byte{texts("fun", id), texts("fun", "again")} {
			n.mine(id, mine)
			n.store.Spread(ctx, id)
			for _, o := range w.nodes {
				if got, _ := o.has(id); !bytes.Equal(got, mine) {
					t.Errorf("%d: %s has %q of %s", i, o.id, got, id)
				}
			}
		}
		n.flush(id)
		n.store.Spread(ctx, id)
		for _, o := range w.nodes {
			if got, _ := o.has(id); got != nil {
				t.Errorf("%s still has %q of %s", o.id, got, id)
			}
		}
	}
	if ctx.Err() != nil {
		t.Error("somebody waited in vain")
	}
}

// Spread does not wait for a peer that is away.
func TestSpread_PeerDown(t *testing.T) {
	w, a, _, _ := threeOf(t, Mine)
	w.setKey("web1", "k")
	w.Cut("c", true)
	a.mine("web1", texts("f", "1"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a.store.Spread(ctx, "web1") // which may learn with this one that c is away
	a.mine("web1", texts("f", "2"))
	a.store.Spread(ctx, "web1")
	if ctx.Err() != nil {
		t.Error("it waited")
	}
}

// A mine that was flushed while a node was away does not come back from it; one that was written later stays.
func TestFlushedMineStaysAway(t *testing.T) {
	w, a, b, c := threeOf(t, Mine)
	for _, id := range []string{"web1", "web2"} {
		w.setKey(id, "k")
		a.mine(id, texts("f", "1"))
		a.store.Touched(id)
		w.everywhere(id, texts("f", "1"), nil)
	}
	c.close()
	b.flush("web1")
	b.flush("web2")
	for _, id := range []string{"web1", "web2"} {
		w.poll("flushed on a", func() bool { m, _ := a.has(id); return m == nil })
	}
	a.mine("web2", texts("f", "2"))
	w.poll("written on b", func() bool { m, _ := b.has("web2"); return m != nil })
	a.close() // and what it knows outlives it
	a.open()
	c.open()
	w.everywhere("web1", nil, nil)
	w.everywhere("web2", texts("f", "2"), nil)
}

// A cache that was lost is not taken for one that somebody cleared.
func TestLostMinesComeBack(t *testing.T) {
	w, a, _, c := threeOf(t, Mine)
	w.setKey("web1", "k")
	a.mine("web1", texts("f", "1"))
	w.everywhere("web1", texts("f", "1"), nil)
	for _, dir := range []string{filepath.Join(a.master.CacheDir, "minions"), filepath.Join(c.master.CacheDir, "mine")} {
		require.NoError(t, os.RemoveAll(dir))
		w.everywhere("web1", texts("f", "1"), nil)
	}
}

// A mine is deleted with its key. The data of another kind stay.
func TestMine_KeyDeleted(t *testing.T) {
	w, a, b, c := threeOf(t, Mine)
	w.setKey("web1", "k")
	c.mine("web1", texts("f", "1"))
	w.everywhere("web1", texts("f", "1"), nil)
	b.file("minions/web1/data.p", texts("grains", "x"))
	w.setKey("web1", "")
	w.everywhere("web1", nil, nil)
	if _, err := os.Stat(filepath.Join(b.master.CacheDir, "minions/web1/data.p")); err != nil {
		t.Errorf("the data of another kind: %v", err)
	}
	w.setKey("web1", "new")
	a.mine("web1", texts("f", "2"))
	w.everywhere("web1", texts("f", "2"), nil)
}

func TestMineWithoutMinionData(t *testing.T) {
	m := master(3006, "/")
	m.DataCache = false
	if m.off(Mine) == "" {
		t.Error("nothing keeps it off")
	}
	if m.EnforceMine = true; m.off(Mine) != "" || m.off(Data) == "" {
		t.Errorf("%q, %q", m.off(Mine), m.off(Data))
	}
}

// The bytes that other nodes of this and of the version before understand.
func TestWireFixtures(t *testing.T) {
	gone := record{id: "web2", stamp: 8 << stampBits, key: "k2"}
	mine := record{id: "web1", stamp: 7 << stampBits, key: "k1", data: data{main: texts("f", "x")}}
	both := record{id: "web1", stamp: 7 << stampBits, key: "k1",
		data: data{main: texts("os", "D"), pillars: []pillar{{"dev", texts("a", "b")}}}}
	for name, got := range map[string][]byte{
		"data-v1":   encodeRecords(Data, []record{both}),
		"mine-v1":   encodeRecords(Mine, []record{mine, gone}),
		"digest-v1": encodeDigest(digest{ranged: true, from: "a", answer: true, stamps: []stamped{{"web1", 7 << stampBits}}}),
	} {
		path := filepath.Join("testdata", "wire", name+".hex")
		want, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && os.Getenv("UPDATE_FIXTURES") != "" {
			want = []byte(hex.EncodeToString(got) + "\n")
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, want, 0o644))
		}
		require.NoError(t, err)
		if hex.EncodeToString(got) != string(bytes.TrimSpace(want)) {
			t.Errorf("%s: %x", name, got)
		}
	}
	if _, err := decode(Data, encodeRecords(Mine, []record{mine})); err == nil {
		t.Error("a mine was taken for grains")
	}
}
