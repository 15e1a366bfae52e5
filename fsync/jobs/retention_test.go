package jobs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
)

// date sets from when on a node's master counts the age of a job.
func (n *testNode) date(jid string, at time.Time) {
	n.w.t.Helper()
	if err := os.Chtimes(filepath.Join(n.store.disk.path(jid), jidFile), at, at); err != nil {
		n.w.t.Fatal(err)
	}
}

// clean removes a job as the master does whose time for it is over, once its store knows how old it is.
func (n *testNode) clean(jid string) {
	n.w.t.Helper()
	eventually(n.w.t, func() error {
		n.store.index.mu.Lock()
		defer n.store.index.mu.Unlock()
		if j := n.store.index.jobs[jid]; j == nil || !j.there || !n.store.index.nearlyOver(j.at) {
			return errors.New("its age was not seen")
		}
		return nil
	})
	n.remove(jid)
}

func (n *testNode) remove(jid string) {
	n.w.t.Helper()
	if err := os.RemoveAll(n.store.disk.path(jid)); err != nil {
		n.w.t.Fatal(err)
	}
}

// What retention removed stays away though all nodes start anew, its returns come late and others keep it for ever: it
// was removed before the stop, or while nobody looked. It does not vanish from those others.
func TestRetention_Restart(t *testing.T) {
	w := newWorld(t)
	const keep = time.Hour
	a := w.add("a", func(c *Config) { c.Master.Keep = 0 })
	b := w.add("b", func(c *Config) { c.Master.Keep = keep })
	before, meanwhile, byHand := w.jid(), w.jid(), w.jid()
	for _, jid := range []string{before, meanwhile, byHand} {
		a.publish(jid, "m1", "m2")
		a.ret(jid, "m1", "one")
		same(t, jid, 4, a, b)
	}
	w.quiet()
	over := time.Now().Add(-keep)
	b.date(before, over)
	b.clean(before)
	b.date(meanwhile, over)
	eventually(t, func() error {
		if j, _ := b.store.index.known(meanwhile); time.Since(time.Unix(0, j.at)) < keep {
			return errors.New("its age was not seen")
		}
		if _, ok := b.store.index.known(before); ok {
			return errors.New("it was not missed")
		}
		return nil
	})
	b.publish(w.jid()) // a reason to save the table
	w.restart(func() {
		b.remove(meanwhile)
		b.remove(byHand)
	})
	for _, jid := range []string{before, meanwhile, byHand} {
		a.ret(jid, "m2", "late")
	}
	same(t, byHand, 5, a, b) // before its time: it comes back
	for range 2 {
		a.store.feed.Tell(false)
		w.quiet()
	}
	for _, jid := range []string{before, meanwhile} {
		if got := b.content(jid); len(got) > 0 {
			t.Errorf("%s came back: %v", jid, slices.Sorted(maps.Keys(got)))
		}
		if got := a.content(jid); len(got) != 5 {
			t.Errorf("%s vanished: %v", jid, slices.Sorted(maps.Keys(got)))
		}
	}
	w.restart(func() {}) // the second time they are known by the table alone
	w.quiet()
	if _, ok := b.store.index.gone[meanwhile]; !ok {
		t.Error("it is forgotten")
	}
}

// What a master removed that kept jobs for a short time does not come back when it keeps them for longer from then on,
// whether saltclusterd was there or not.
func TestRetention_KeptLonger(t *testing.T) {
	w := newWorld(t)
	change := func(c *Config) { c.Timing.Scan = time.Hour } // nobody misses them
	a, b := w.add("a", change), w.add("b", func(c *Config) { change(c); c.Master.Keep = time.Hour })
	first, second := w.jid(), w.jid()
	for _, jid := range []string{first, second} {
		a.publish(jid, "m1")
		same(t, jid, 3, a, b)
	}
	w.quiet()
	over := time.Now().Add(-time.Hour)
	for _, jid := range []string{first, second} {
		b.date(jid, over)
		b.store.index.mu.Lock()
		b.store.index.jobs[jid].at = over.UnixNano()
		b.store.index.mu.Unlock()
	}
	b.remove(first)
	b.store.SetKeep(24 * time.Hour)
	b.store.SetKeep(time.Hour)
	w.restart(func() {
		b.remove(second)
		b.cfg.Master.Keep = 0
	})
	a.store.feed.Tell(false)
	w.quiet()
	for _, jid := range []string{first, second} {
		if got := b.content(jid); len(got) > 0 {
			t.Errorf("%s came back", jid)
		}
	}
}

// A job of others that was here for a moment only, between two looks, is known to have been removed, too.
func TestReceivedAndRemovedBetweenLooks(t *testing.T) {
	w := newWorld(t)
	change := func(c *Config) { c.Timing.Scan, c.Timing.Poll, c.Timing.Save = time.Hour, time.Hour, time.Millisecond }
	a := w.add("a", func(c *Config) { change(c); c.Master.Keep = 0 })
	b := w.add("b", func(c *Config) { change(c); c.Master.Keep = time.Hour })
	w.quiet()
	jid := w.jid()
	a.publish(jid, "m1", "m2")
	same(t, jid, 3, a, b)
	eventually(t, func() error {
		got, err := loadTable(b.cfg.StateDir)
		if _, ok := got.there[jid]; err == nil && !ok {
			err = errors.New("not in the table")
		}
		return err
	})
	later := time.Now().Add(2 * time.Hour)
	w.restart(func() {
		b.remove(jid)
		b.cfg.Now = func() time.Time { return later }
	})
	a.date(jid, later) // with a return that is late
	a.ret(jid, "m2", "late")
	for range 2 {
		a.store.feed.Tell(false)
		w.quiet()
	}
	if got := b.content(jid); len(got) > 0 {
		t.Errorf("it came back: %v", got)
	}
}

func TestTable(t *testing.T) {
	dir := t.TempDir()
	if got, err := loadTable(dir); err != nil || len(got.there)+len(got.gone) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	want := table{time.Hour, map[string]int64{"one": 7, "two": -1}, []string{"b", "a"}}
	if err := want.save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := loadTable(dir)
	if err != nil || got.keep != want.keep || !maps.Equal(got.there, want.there) || !slices.Equal(got.gone, want.gone) {
		t.Errorf("%+v, %v", got, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
	raw := want.encode()
	for name, b := range map[string][]byte{
		"empty": {}, "short": raw[:len(raw)-1], "torn": raw[:20],
		"version": []byte(tableMagic + "\x09" + strings.Repeat("x", 20)),
		"bit":     func() []byte { c := slices.Clone(raw); c[9] ^= 1; return c }(),
	} {
		if _, err := decodeTable(b); !errors.Is(err, errTable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A table that is damaged costs the memory of what was removed, and nothing else.
func TestDamagedTable(t *testing.T) {
	w := newWorld(t)
	a, b := w.add("a", nil), w.add("b", nil)
	jid := w.jid()
	a.publish(jid, "m1")
	same(t, jid, 3, a, b)
	w.restart(func() {
		if err := os.WriteFile(filepath.Join(b.cfg.StateDir, tableName), []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	a.ret(jid, "m1", "one")
	same(t, jid, 4, a, b)
}

// A table that a newer version has written is not passed over: what was removed would come back.
func TestNewerTableIsRefused(t *testing.T) {
	a := newWorld(t).add("a", nil)
	a.close()
	raw := (table{}).encode()
	raw[len(tableMagic)] = tableVersion + 1
	raw = binary.BigEndian.AppendUint64(raw[:len(raw)-8], xxhash.Sum64(raw[:len(raw)-8]))
	path := filepath.Join(a.cfg.StateDir, tableName)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(a.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); !errors.Is(err, errNewer) {
		t.Errorf("error %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, raw) {
		t.Errorf("the table became %q, %v", now, err)
	}
}

// The table is saved when it changes, not only at the end.
func TestTableIsSavedMeanwhile(t *testing.T) {
	w := newWorld(t)
	a := w.add("a", func(c *Config) { c.Timing.Save = 10 * time.Millisecond })
	jid := w.jid()
	a.publish(jid, "m1")
	eventually(t, func() error {
		got, err := loadTable(a.cfg.StateDir)
		if _, ok := got.there[jid]; err == nil && !ok {
			err = fmt.Errorf("%d jobs", len(got.there))
		}
		return err
	})
}

func FuzzTable(f *testing.F) {
	f.Add(table{time.Hour, map[string]int64{"20260102000000000001": 7}, []string{"a", "b"}}.encode())
	f.Add(table{}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeTable(b)
		if err != nil {
			return
		}
		again, err := decodeTable(got.encode())
		if err != nil || !maps.Equal(again.there, got.there) || !slices.Equal(again.gone, got.gone) {
			t.Errorf("%+v, %+v, %v", got, again, err)
		}
	})
}
