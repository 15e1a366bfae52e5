package mmapkeys

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/zeebo/xxh3"

	"saltclusterd/integration/require"
)

type pubState struct{ State, Pub string }

type expected struct {
	Slots    int `json:"slots"`
	SlotSize int `json:"slot_size"`
	KeySize  int `json:"key_size"`
	geometry Geometry
	raw      map[string]json.RawMessage
}

// golden copies a store that Salt has made and returns its directory and what Salt reads from it.
func golden(t testing.TB, name string) (string, expected) {
	t.Helper()
	from, dir := filepath.Join("testdata/golden", name), t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
	text, err := os.ReadFile(filepath.Join(from, "expected.json"))
	require.NoError(t, err)
	var e expected
	require.NoError(t, json.Unmarshal(text, &e))
	require.NoError(t, json.Unmarshal(text, &e.raw))
	e.geometry = Geometry{Slots: e.Slots, SlotSize: e.SlotSize, KeySize: e.KeySize}
	return dir, e
}

func (e expected) of(t *testing.T, bank string, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(e.raw[bank], v))
}

func bank(t testing.TB, dir, name string, g Geometry) *Bank {
	t.Helper()
	b, err := NewBank(dir, name, g)
	require.NoError(t, err)
	return b
}

func read(t testing.TB, b *Bank) Content {
	t.Helper()
	c, err := b.Read(t.Context(), nil, false)
	require.NoError(t, err)
	whole, err := b.Read(t.Context(), nil, true)
	require.NoError(t, err)
	for key, e := range c.Entries {
		if whole.Entries[key].slot != e.slot {
			t.Errorf("%q: the roster says slot %d, the index %d", key, e.slot, whole.Entries[key].slot)
		}
	}
	return c
}

func TestHashIsThatOfSalt(t *testing.T) {
	text, err := os.ReadFile("testdata/golden/xxh3.json")
	require.NoError(t, err)
	var want map[int]string
	if err := json.Unmarshal(text, &want); err != nil || len(want) < 50 {
		t.Fatal(len(want), err)
	}
	for n, sum := range want {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i % 251)
		}
		if got := fmt.Sprintf("%016x", xxh3.Hash(b)); got != sum {
			t.Errorf("%d bytes: %s, not %s", n, got, sum)
		}
	}
}

func TestReadsWhatSaltWrote(t *testing.T) {
	dir, e := golden(t, "minion_keys")
	var keys map[string]pubState
	e.of(t, "keys", &keys)
	b := bank(t, dir, Keys, e.geometry)
	if c := read(t, b); !c.Inconsistent { // this Salt has put and deleted in one process
		t.Error("not crooked")
	}
	require.NoError(t, b.Repair(t.Context()))
	c := read(t, b)
	if len(c.Entries) != len(keys) || c.Inconsistent || len(keys) < 20 {
		t.Errorf("%d keys, not %d; crooked %v", len(c.Entries), len(keys), c.Inconsistent)
	}
	states := map[string]byte{"accepted": Accepted, "pending": Pending, "rejected": Rejected}
	for id, want := range keys {
		got := c.Entries[id]
		state, pub, ok := DecodeKey(got.Value)
		if !ok || state != states[want.State] || pub != want.Pub || !got.Listed || got.Damaged || got.MTime.IsZero() {
			t.Errorf("%q: %+v, not %+v", id, got, want)
		}
	}
	var denied map[string][]string
	e.of(t, "denied_keys", &denied)
	c = read(t, bank(t, dir, DeniedKeys, e.geometry))
	if len(c.Entries) != 1 || string(c.Entries["minion-1"].Value) != denied["minion-1"][0] {
		t.Errorf("denied: %+v", c.Entries)
	}
	var master map[string]string
	e.of(t, "master_keys", &master)
	c = read(t, bank(t, dir, MasterKeys, e.geometry))
	for name, want := range master {
		if got := c.Entries[name]; string(got.Value) != want {
			t.Errorf("%s: %q", name, got.Value)
		}
	}
}

func TestReadsACrowdedTable(t *testing.T) {
	dir, e := golden(t, "crowded")
	var want map[string]string
	e.of(t, "keys", &want)
	c := read(t, bank(t, dir, Keys, e.geometry))
	for key, value := range want {
		if got := c.Entries[key]; string(got.Value) != value || got.Damaged {
			t.Errorf("%s: %q, not %q", key, got.Value, value)
		}
	}
	if len(c.Entries) != len(want) || c.Mark.segments != 3 || c.Fill < 0.9 {
		t.Errorf("%d entries, %d segments, fill %v", len(c.Entries), c.Mark.segments, c.Fill)
	}
}
