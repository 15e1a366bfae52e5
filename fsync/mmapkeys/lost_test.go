package mmapkeys

import (
	"fmt"
	"maps"
	"os"
	"testing"

	"saltclusterd/integration/require"
)

// zero overwrites slots of the index.
func zero(t *testing.T, b *Bank, from, n int) {
	t.Helper()
	f, err := os.OpenFile(b.path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, n*b.g.SlotSize), int64(from*b.g.SlotSize)); err != nil {
		t.Fatal(err)
	}
}

func lost(t *testing.T, b *Bank, keys ...string) bool {
	t.Helper()
	is, err := b.Lost(t.Context(), keys)
	require.NoError(t, err)
	return is
}

// What is deleted leaves a mark, what a power failure takes leaves none.
func TestLostPages(t *testing.T) {
	for _, many := range []int{3, 30} { // listed slots are read one by one, or all
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			g := Geometry{Slots: 64 * 8, SlotSize: 48, KeySize: 20}
			b := bank(t, t.TempDir(), Keys, g)
			var changes []Change
			for i := range many {
				changes = append(changes, put(fmt.Sprintf("k%d", i), "v"))
			}
			apply(t, b, changes...)
			c := read(t, b)
			var wrote Content
			for _, change := range changes {
				wrote.Wrote(change.After)
			}
			if wrote.High != c.High || c.High == 0 {
				t.Errorf("highest slot %d, %d are written", c.High, wrote.High)
			}
			apply(t, b, put("k0", ""))
			if c = read(t, b); c.Holes || lost(t, b, "k0") || lost(t, b) {
				t.Error("what is deleted is taken for lost")
			}
			zero(t, b, 0, 1)
			if c = read(t, b); c.Holes || c.High != 0 {
				t.Errorf("the header is lost: %+v", c)
			}
			zero(t, b, 1, g.Slots-1)
			if c = read(t, b); !c.Holes || !c.Inconsistent || !lost(t, b, "k0", "k1") {
				t.Errorf("all slots are lost: %+v", c)
			}
			require.NoError(t, b.Repair(t.Context()))
			if c = read(t, b); c.Holes || c.Inconsistent || len(c.Entries) != 0 || !lost(t, b, "k1") {
				t.Errorf("after the repair: %+v", c)
			}
		})
	}
}

// A process of Salt leaves what it has deleted on the roster now and then; a slot without a key nobody has written.
func TestHoles(t *testing.T) {
	b := bank(t, t.TempDir(), Keys, small())
	c := put("k", "v")
	changes := []Change{c}
	apply(t, b, changes...)
	slot := int64(b.g.SlotSize) * int64(changes[0].After.slot)
	for status, want := range map[byte]bool{slotEmpty: true, slotOccupied: false, slotDeleted: false, 7: true} {
		f, err := os.OpenFile(b.path, os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte{status}, slot)
		_ = f.Close()
		require.NoError(t, err)
		for _, thorough := range []bool{false, true} {
			c, err := b.Read(t.Context(), nil, thorough)
			if err != nil || c.Holes != want {
				t.Errorf("status %d, thorough %v: holes %v, %v", status, thorough, c.Holes, err)
			}
		}
	}
}

// A heap that has lost its end: no value takes the place of another one that may still come to be replaced.
func TestShortHeap(t *testing.T) {
	b := bank(t, t.TempDir(), Keys, small())
	apply(t, b, put("a", "value of a"), put("b", "value of b"), put("c", "value of c"))
	if c := read(t, b); c.Short {
		t.Error("a good heap is short")
	}
	require.NoError(t, os.Truncate(b.path+".heap", 20)) // a is left
	c := read(t, b)
	if !c.Short || c.Entries["a"].Damaged || !c.Entries["b"].Damaged || !c.Entries["c"].Damaged {
		t.Fatalf("%+v", c)
	}
	require.NoError(t, b.Repair(t.Context()))
	if c = read(t, b); c.Short || !c.Entries["b"].Damaged || !c.Entries["c"].Damaged {
		t.Fatalf("after the repair: %+v", c)
	}
	apply(t, b, put("d", "value of d"), put("c", "value of c"), put("b", "value of b"))
	want := map[string]string{"a": "value of a", "b": "value of b", "c": "value of c", "d": "value of d"}
	if got := values(read(t, b)); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
