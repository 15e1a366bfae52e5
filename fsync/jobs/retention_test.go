package jobs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"saltclusterd/fsync/replica/replicatest"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// date sets from when on a node's master counts the age of a job.
func (n *testNode) date(jid string, at time.Time) {
	n.w.t.Helper()
	require.NoError(n.w.t, os.Chtimes(filepath.Join(n.store.disk.path(jid), jidFile), at, at))
}

// clean removes a job as the master does whose time for it is over, once its store knows how old it is.
func (n *testNode) clean(jid string) {
	n.w.t.Helper()
	patience.WaitNil(n.w.t, func() error {
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
	replicatest.Lose(n.w.t, n.store.disk.path(jid))
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
	patience.WaitNil(t, func() error {
		if j, _ := b.store.index.known(meanwhile); time.Since(time.Unix(0, j.at)) < keep {
			return errors.New("its age was not seen")
		}
		if _, ok := b.store.index.known(before); ok {
			return errors.New("it was not missed")
		}
		return nil
	})
	reason := w.jid() // to save the table: a job that the node has noticed
	b.publish(reason)
	patience.WaitNil(t, func() error {
		if _, ok := b.store.index.known(reason); !ok {
			return errors.New("a new job was not noticed")
		}
		return nil
	})
	w.restart(func() {
		b.remove(meanwhile)
		b.remove(byHand)
	})
	for _, jid := range []string{before, meanwhile, byHand} {
		a.ret(jid, "m2", "late")
	}
	same(t, byHand, 5, a, b) // before its time: it comes back
	for range 2 {
		a.store.Feed().Tell(false)
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
	a.store.Feed().Tell(false)
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
	change := func(c *Config) { c.Timing.Scan, c.Timing.Poll, c.Pace.Save = time.Hour, time.Hour, time.Millisecond }
	a := w.add("a", func(c *Config) { change(c); c.Master.Keep = 0 })
	b := w.add("b", func(c *Config) { change(c); c.Master.Keep = time.Hour })
	w.quiet()
	jid := w.jid()
	a.publish(jid, "m1", "m2")
	same(t, jid, 3, a, b)
	patience.WaitNil(t, func() error {
		got, err := b.savedTable()
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
		a.store.Feed().Tell(false)
		w.quiet()
	}
	if got := b.content(jid); len(got) > 0 {
		t.Errorf("it came back: %v", got)
	}
}

// savedTable is the table on disk, which may have to be written yet.
func (n *testNode) savedTable() (table, error) {
	raw, err := os.ReadFile(filepath.Join(n.cfg.StateDir, tableName))
	if err != nil {
		return table{}, err
	}
	return decodeTable(raw)
}

func TestTable(t *testing.T) {
	want := table{time.Hour, map[string]int64{"one": 7, "two": -1}, []string{"b", "a"}}
	got, err := decodeTable(want.encode())
	if err != nil || got.keep != want.keep || !maps.Equal(got.there, want.there) || !slices.Equal(got.gone, want.gone) {
		t.Errorf("%+v, %v", got, err)
	}
	raw := want.encode()
	for name, b := range map[string][]byte{
		"empty": {}, "short": raw[:len(raw)-1], "torn": raw[:20],
		"bit": func() []byte { c := slices.Clone(raw); c[9] ^= 1; return c }(),
	} {
		if _, err := decodeTable(b); !errors.Is(err, errTable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The table is saved when it changes, not only at the end.
func TestTableIsSavedMeanwhile(t *testing.T) {
	w := newWorld(t)
	a := w.add("a", func(c *Config) { c.Pace.Save = 10 * time.Millisecond })
	jid := w.jid()
	a.publish(jid, "m1")
	patience.WaitNil(t, func() error {
		got, err := a.savedTable()
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
