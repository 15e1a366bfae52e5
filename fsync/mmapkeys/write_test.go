package mmapkeys

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
)

func small() Geometry { return Geometry{Slots: 37, SlotSize: 48, KeySize: 20} }

func apply(t *testing.T, b *Bank, changes ...Change) {
	t.Helper()
	for i, err := range b.Apply(t.Context(), changes) {
		if err != nil {
			t.Fatalf("%+v: %v", changes[i], err)
		}
	}
}

func values(c Content) map[string]string {
	out := map[string]string{}
	for key, e := range c.Entries {
		if e.Listed {
			out[key] = string(e.Value)
		}
	}
	return out
}

func put(key, value string) Change { return Change{Key: key, Value: []byte(value)} }

func TestChangesAreFound(t *testing.T) {
	b := bank(t, t.TempDir(), Keys, small())
	want := map[string]string{}
	for round := range 6 {
		var changes []Change
		for i := range 30 {
			key := fmt.Sprintf("k%d", i)
			value := strings.Repeat("v", 1+(i*7+round*13)%50)
			if (i+round)%4 == 0 {
				value = ""
			}
			changes = append(changes, put(key, value))
			if want[key] = value; value == "" {
				delete(want, key)
			}
		}
		apply(t, b, changes...)
		c := read(t, b)
		if got := values(c); !maps.Equal(got, want) || c.Inconsistent {
			t.Fatalf("round %d: %v, not %v; crooked %v", round, got, want, c.Inconsistent)
		}
	}
}

func TestFullTable(t *testing.T) {
	b := bank(t, t.TempDir(), Keys, small())
	var changes []Change
	for i := range 40 {
		changes = append(changes, put(fmt.Sprintf("k%d", i), "v"))
	}
	full := 0
	for _, err := range b.Apply(t.Context(), changes) {
		if errors.Is(err, ErrFull) {
			full++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if full != 4 { // the header has a slot, too
		t.Errorf("%d of 40 found no room", full)
	}
	apply(t, b, put("k0", ""))
	apply(t, b, put("k39", "again"))
	if got := values(read(t, b)); len(got) != 36 || got["k39"] != "again" {
		t.Errorf("%v", got)
	}
	if err := b.Apply(t.Context(), []Change{put(strings.Repeat("x", 21), "v")})[0]; !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
}

func TestApply_BaseChanged(t *testing.T) {
	b := bank(t, t.TempDir(), Keys, small())
	none := &Entry{}
	apply(t, b, Change{Key: "a", Value: []byte("one"), Base: none})
	seen := read(t, b).Entries["a"]
	apply(t, b, put("a", "two"))
	for _, c := range []Change{
		{Key: "a", Value: []byte("three"), Base: &seen}, {Key: "a", Base: &seen}, {Key: "a", Value: []byte("x"), Base: none},
	} {
		if err := b.Apply(t.Context(), []Change{c})[0]; !errors.Is(err, ErrChanged) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	seen = read(t, b).Entries["a"]
	apply(t, b, put("a", ""))
	if err := b.Apply(t.Context(), []Change{{Key: "a", Value: []byte("three"), Base: &seen}})[0]; !errors.Is(err,
		ErrChanged) {
		t.Error(err)
	}
}

func TestHiddenEntries(t *testing.T) {
	b := bank(t, t.TempDir(), Keys, small())
	hidden := Change{Key: HiddenPrefix, Value: []byte("key"), Hidden: true}
	apply(t, b, put("a", "1"), hidden, put("b", "2"))
	apply(t, b, hidden)
	check := func(c Content) {
		t.Helper()
		if got := values(c); len(got) != 2 || c.Inconsistent {
			t.Errorf("%v, crooked %v", got, c.Inconsistent)
		}
	}
	check(read(t, b))
	c, err := b.Read(t.Context(), nil, true)
	if err != nil || string(c.Entries[HiddenPrefix].Value) != "key" || c.Entries[HiddenPrefix].Listed {
		t.Fatalf("%+v, %v", c.Entries, err)
	}
	require.NoError(t, os.Remove(b.path+".roster")) // a repair does not list it
	if c, err = b.Read(t.Context(), nil, false); err != nil || !c.Inconsistent {
		t.Fatalf("%+v, %v", c, err)
	}
	apply(t, b)
	check(read(t, b))
	apply(t, b, Change{Key: HiddenPrefix})
	check(read(t, b))
}

// TestRepair_AfterCrash cuts a change off after each of its writes.
func TestRepair_AfterCrash(t *testing.T) {
	g := small()
	for name, cut := range map[string]func(w *writer, at uint32) error{
		"occupied, not counted": func(w *writer, at uint32) error {
			_, err := w.index.WriteAt(append([]byte{slotOccupied}, "new"...), g.slotOffset(at))
			return err
		},
		"counted, not listed": func(w *writer, at uint32) error {
			_, err := w.index.WriteAt(append([]byte{slotOccupied}, "new"...), g.slotOffset(at))
			w.head.occupied++
			return errors.Join(err, w.saveHeader())
		},
		"deleted, still listed": func(w *writer, _ uint32) error {
			gone, _, _, _ := w.findKey("a")
			_, err := w.index.WriteAt([]byte{slotDeleted}, g.slotOffset(gone))
			return err
		},
		"half an entry of the roster": func(w *writer, _ uint32) error {
			_, err := w.table.roster.WriteAt([]byte{7}, w.end)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := bank(t, t.TempDir(), Keys, g)
			apply(t, b, put("a", "1"), put("b", "2"))
			tab, err := b.openTable(os.O_RDWR)
			require.NoError(t, err)
			w, err := newWriter(tab)
			require.NoError(t, err)
			at, _, _, _ := w.findKey("new")
			require.NoError(t, cut(w, at))
			tab.close()
			require.NoError(t, b.Repair(t.Context()))
			apply(t, b, put("c", "3"))
			c := read(t, b)
			if got := values(c); got["b"] != "2" || got["c"] != "3" || c.Inconsistent {
				t.Errorf("%v, crooked %v", got, c.Inconsistent)
			}
		})
	}
}

func TestLock(t *testing.T) {
	b := bank(t, t.TempDir(), Keys, small())
	apply(t, b, put("a", "1"))
	f, err := b.takeLock(t.Context(), unix.LOCK_EX)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := b.Read(ctx, nil, false); !errors.Is(err, ErrLocked) {
		t.Errorf("read under somebody's lock: %v", err)
	}
	if err := b.Apply(ctx, []Change{put("a", "2")})[0]; !errors.Is(err, ErrLocked) {
		t.Errorf("written under somebody's lock: %v", err)
	}
	require.NoError(t, os.Remove(b.path+".lock")) // as Salt does with a bank that it wipes
	apply(t, b, put("a", "2"))
	_ = f.Close()
	if got := values(read(t, b)); got["a"] != "2" {
		t.Errorf("%v", got)
	}
}

func TestForeignFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	b := bank(t, dir, Keys, small())
	if c, err := b.Read(t.Context(), nil, true); err != nil || c.Exists {
		t.Errorf("no bank: %+v, %v", c, err)
	}
	apply(t, b, put("a", "1"))
	other := bank(t, dir, Keys, Geometry{Slots: 38, SlotSize: 48, KeySize: 20})
	if _, err := other.Read(t.Context(), nil, false); !errors.Is(err, ErrGeometry) {
		t.Error(err)
	}
	if err := other.Apply(t.Context(), []Change{put("b", "2")})[0]; !errors.Is(err, ErrGeometry) {
		t.Error(err)
	}
	require.NoError(t, os.Rename(b.path, b.path+"x"))
	require.NoError(t, os.Symlink(b.path+"x", b.path))
	if _, err := b.Read(t.Context(), nil, false); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link: %v", err)
	}
	for _, g := range []Geometry{{}, {Slots: 1 << 30, SlotSize: 96, KeySize: 64}, {Slots: 10, SlotSize: 80, KeySize: 64},
		{Slots: 10, SlotSize: 1 << 20, KeySize: 1}} {
		if _, err := NewBank(dir, Keys, g); !errors.Is(err, ErrGeometry) {
			t.Errorf("%+v: %v", g, err)
		}
	}
}

func TestMarkTellsChanges(t *testing.T) {
	b := bank(t, t.TempDir(), Keys, small())
	apply(t, b, put("a", "1"))
	c := read(t, b)
	if b.Mark() != c.Mark {
		t.Error("a read changes the mark")
	}
	for _, change := range []Change{put("b", "2"), put("a", "222"), put("b", "")} {
		was := b.Mark()
		apply(t, b, change)
		if b.Mark() == was && !slices.Contains([]string{""}, string(change.Value)) {
			t.Errorf("%+v leaves no mark", change)
		}
		if b.Mark().Identity() != was.Identity() {
			t.Error("another bank")
		}
	}
}

// What Salt has put in the index and lost in the roster is found, though the numbers agree.
func TestRepair_RosterEntryMissing(t *testing.T) {
	b := bank(t, t.TempDir(), Keys, small())
	apply(t, b, put("a", "1"), put("b", "2"), put("c", "3"))
	tab, err := b.openTable(os.O_RDWR)
	require.NoError(t, err)
	defer tab.close()
	w, err := newWriter(tab)
	require.NoError(t, err)
	at, _, _, err := w.findKey("b")
	require.NoError(t, err)
	require.NoError(t, w.setListed(at, false))
	c, err := b.Read(t.Context(), nil, true)
	if err != nil || !c.Inconsistent {
		t.Fatalf("%+v, %v", c, err)
	}
	require.NoError(t, b.Repair(t.Context()))
	if c = read(t, b); c.Inconsistent || values(c)["b"] != "2" || len(values(c)) != 3 {
		t.Errorf("%+v", c)
	}
}
