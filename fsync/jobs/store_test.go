package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/fsync/replica/replicatest"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

func TestPublishedJobIsEverywhere(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.add("a", nil), w.add("b", func(c *Config) { c.Master.HashType = "md5" }), w.add("c", nil)
	jid := w.jid()
	a.publish(jid, "m1", "m2")
	a.ret(jid, "m1", "one")
	a.ret(jid, "m2", "two")
	same(t, jid, 5, a, b, c)
	w.quiet()
	info, err := os.Stat(filepath.Join(b.store.disk.path(jid), "m1"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("directory of a return: %v %v", info, err)
	}
	for _, name := range []string{loadFile, jidFile, "m1/" + returnFile} {
		info, err := os.Stat(filepath.Join(b.store.disk.path(jid), name))
		if err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}

// A job is on as many nodes as before soon after its publisher was removed, however new it is.
func TestStore_PublisherRemoved(t *testing.T) {
	w := newWorld(t)
	nodes := map[node.ID]*testNode{}
	for _, id := range []node.ID{"a", "b", "c", "d"} {
		nodes[id] = w.add(id, func(c *Config) {
			c.Timing.Quiet = time.Second
			c.Replicas = func(string) []node.ID { all := w.all(); return all[:min(3, len(all))] }
		})
	}
	jid := w.jid()
	nodes["a"].publish(jid, "m1")
	nodes["a"].ret(jid, "m1", "one")
	same(t, jid, 4, nodes["a"], nodes["b"], nodes["c"])
	nodes["a"].close()
	w.remove("a")
	same(t, jid, 4, nodes["b"], nodes["c"], nodes["d"])
}

// What Python writes, and nobody tells of, is found by polling: a runner's job, and returns that come later.
func TestPythonsJobIsFound(t *testing.T) {
	w := newWorld(t)
	a, b := w.add("a", nil), w.add("b", nil)
	w.quiet()
	jid := w.jid()
	a.python(jid, minionsFile, list())
	a.python(jid, loadFile, load(jid, true))
	a.python(jid, "a_master/"+returnFile, ret("done"))
	a.python(jid, "a_master/"+outFile, []byte{0xa6, 'n', 'e', 's', 't', 'e', 'd'})
	same(t, jid, 5, a, b)
	a.python(jid, "late/"+returnFile, ret("late"))
	same(t, jid, 6, a, b)
	// A directory that a slow master fills later.
	require.NoError(t, os.Mkdir(filepath.Join(a.store.disk.path(jid), "slow"), 0o755))
	patience.WaitNil(t, func() error {
		info, err := os.Stat(a.store.disk.path(jid))
		if j, ok := a.store.index.known(jid); err == nil && (!ok || j.dir != info.ModTime().UnixNano()) {
			err = errors.New("the directory was not seen")
		}
		return err
	})
	a.python(jid, "slow/"+returnFile, ret("slow"))
	same(t, jid, 7, a, b)
}

// A load that was kept from a return gives way to the one that was published, whoever is asked first.
func TestPublishedLoadWins(t *testing.T) {
	w := newWorld(t)
	a, b := w.add("a", nil), w.add("b", nil)
	w.quiet()
	w.setDown("a", true)
	jid := w.jid()
	a.publish(jid, "m1", "m2")
	b.python(jid, minionsFile, list())
	b.python(jid, loadFile, load(jid, true))
	b.ret(jid, "m2", "two")
	a.ret(jid, "m1", "one")
	apart(t, a, b)
	w.setDown("a", false)
	same(t, jid, 5, a, b)
	if got := b.content(jid)[loadFile]; got != string(load(jid, false)) {
		t.Errorf("load is %q", got)
	}
	if got := a.content(jid)[minionsFile]; got != string(list("m1", "m2")) {
		t.Errorf("minions are %q", got)
	}
	w.quiet()
}

// A later load of one master (a batch goes on) replaces the earlier one; a return never changes.
func TestStore_LaterLoadFirstReturn(t *testing.T) {
	w := newWorld(t)
	a, b := w.add("a", nil), w.add("b", nil)
	jid := w.jid()
	a.publish(jid, "m1")
	a.ret(jid, "m1", "one")
	same(t, jid, 4, a, b)
	later(t, func() { a.publish(jid, "m1", "m2", "m3") }, filepath.Join(a.store.disk.path(jid), minionsFile))
	a.store.Stored(jid, "m1", Return{Data: ret("another")}, false)
	patience.WaitNil(t, func() error {
		if got := b.content(jid)[minionsFile]; got != string(list("m1", "m2", "m3")) {
			return fmt.Errorf("minions are %q", got)
		}
		return nil
	})
	w.quiet()
	if got := b.content(jid)["m1/"+returnFile]; got != string(ret("one")) {
		t.Errorf("return is %q", got)
	}
}

// nocache keeps returns out, as with a stock master.
func TestNoCache(t *testing.T) {
	w := newWorld(t)
	a, b := w.add("a", nil), w.add("b", nil)
	jid := w.jid()
	a.python(jid, noCacheFile, nil)
	a.publish(jid, "m1")
	same(t, jid, 4, a, b)
	a.store.Stored(jid, "m1", Return{Data: ret("one")}, false)
	w.quiet()
	if got := len(b.content(jid)); got != 4 {
		t.Errorf("%d files: %v", got, b.content(jid))
	}
}

// What retention removed on one master does not come back from those that keep jobs for longer.
func TestRetention(t *testing.T) {
	w := newWorld(t)
	const keep = time.Hour
	a, b := w.add("a", nil), w.add("b", func(c *Config) { c.Master.Keep = keep })
	old, near, removed, young := w.jid(), w.jid(), w.jid(), w.jid()
	w.setDown("b", true)
	for jid, age := range map[string]time.Duration{old: 2 * keep, near: keep - time.Minute, young: keep / 2} {
		a.publish(jid, "m1")
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(filepath.Join(a.store.disk.path(jid), jidFile), at, at))
	}
	apart(t, a)
	w.setDown("b", false)
	same(t, young, 3, a, b)
	info, err := os.Stat(filepath.Join(b.store.disk.path(young), jidFile))
	if err != nil || time.Since(info.ModTime()) < keep/2 {
		t.Errorf("the job is younger than it was: %v %v", info, err)
	}
	a.publish(removed, "m1", "m2")
	same(t, removed, 3, a, b)
	at := time.Now().Add(-keep)
	require.NoError(t, os.Chtimes(filepath.Join(b.store.disk.path(removed), jidFile), at, at))
	patience.WaitNil(t, func() error { // the store takes notice
		if j, _ := b.store.index.fresh(removed); !time.Unix(0, j.at).Before(time.Now().Add(-keep / 2)) {
			return errors.New("not seen")
		}
		return nil
	})
	replicatest.Lose(t, b.store.disk.path(removed)) // the master cleans up
	a.ret(removed, "m2", "late")
	for range 3 {
		a.store.Feed().Tell(false)
		w.quiet()
	}
	for _, jid := range []string{old, near, removed} {
		if got := b.content(jid); len(got) > 0 {
			t.Errorf("%s came back: %v", jid, got)
		}
	}
}

// A node whose master has never run takes jobs when there is a cachedir.
func TestNoCacheDirYet(t *testing.T) {
	w := newWorld(t)
	a := w.add("a", nil)
	jid := w.jid()
	a.publish(jid, "m1")
	var dir string
	b := w.add("b", func(c *Config) { dir = filepath.Join(c.Master.CacheDir, "later"); c.Master.CacheDir = dir })
	patience.WaitNil(t, func() error {
		if p := a.store.Status().Peers; len(p) != 1 || p[0].Err == "" {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
	require.NoError(t, os.Mkdir(dir, 0o755))
	same(t, jid, 3, a, b)
}

func TestOff(t *testing.T) {
	w := newWorld(t)
	a := w.add("a", nil)
	b := w.add("b", func(c *Config) { c.Master.JobCache = "mysql" })
	jid := w.jid()
	a.publish(jid, "m1")
	w.quiet()
	if st := b.store.Status(); !strings.Contains(st.Off, "mysql") {
		t.Errorf("%+v", st)
	}
	if _, err := os.Stat(b.store.disk.jobs()); !errors.Is(err, fs.ErrNotExist) {
		t.Error("written in spite of that", err)
	}
	if st := a.store.Status(); !st.Peers[0].Off {
		t.Errorf("%+v", st)
	}
	found, err := b.store.Find(context.Background(), jid)
	if err != nil || found.From != "a" {
		t.Errorf("%+v %v", found, err)
	}
}

func TestFindAndList(t *testing.T) {
	w := newWorld(t)
	only := func(c *Config) { c.Replicas = func(string) []node.ID { return []node.ID{"a"} } }
	a, b := w.add("a", only), w.add("b", only)
	jid, mine := w.jid(), w.jid()
	a.publish(jid, "m1", "m2")
	a.ret(jid, "m1", "one")
	b.publish(mine, "m1")
	same(t, mine, 3, b, a)
	w.quiet()
	if got := b.content(jid); len(got) > 0 {
		t.Fatalf("b has %v", got)
	}
	job, err := b.store.Find(context.Background(), jid)
	if err != nil || job.From != "a" || string(job.Returns["m1"].Data) != string(ret("one")) || len(job.Heads) != 2 ||
		job.Cut {
		t.Errorf("%+v %v", job, err)
	}
	if _, err := b.store.Find(context.Background(), w.jid()); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	all, silent := b.store.List(context.Background(), 10)
	if len(all) != 2 || len(silent) > 0 || all[1].JID != jid || all[1].Returned != 1 || all[1].Minions != 2 ||
		all[1].Function != "test.ping" || len(all[1].Nodes) != 1 || len(all[0].Nodes) != 2 {
		t.Errorf("%+v %v", all, silent)
	}
	b.python(jid, loadFile, load(jid, true))
	b.python(jid, "m2/"+returnFile, ret("two")) // a part of it, as who takes over from a publisher that is gone has
	job, err = b.store.Find(context.Background(), jid)
	if err != nil || job.From != "b" || len(job.Returns) != 2 || string(job.Heads[loadFile]) != string(load(jid, false)) {
		t.Errorf("%+v %v", job, err)
	}
	w.setDown("a", true)
	if _, silent = b.store.List(context.Background(), 10); len(silent) != 1 {
		t.Errorf("silent: %v", silent)
	}
	if job, err = b.store.Find(context.Background(), jid); err != nil || len(job.Returns) != 1 {
		t.Errorf("%+v %v", job, err)
	}
}

// A job with many returns goes over once: the comparison afterwards finds nothing to send.
func TestManyReturnsGoOnce(t *testing.T) {
	const many = 2000
	w := newWorld(t)
	w.Record(true)
	a, b, c := w.add("a", nil), w.add("b", nil), w.add("c", nil)
	w.quiet()
	jid := w.jid()
	a.publish(jid)
	for i := range many {
		a.ret(jid, fmt.Sprint("minion-", i), strings.Repeat("x", 100))
	}
	same(t, jid, many+3, a, b, c)
	w.quiet()
	bytes := 0
	for _, b := range w.Sent() {
		bytes += len(b.Bytes)
	}
	if most := 2 * (many + 10) * 400; bytes > most {
		t.Errorf("%d bytes went over, more than %d", bytes, most)
	}
}

// A return that no job asked for goes to the replicas with its job, and the job is not looked at any more.
func TestUnasked(t *testing.T) {
	w := newWorld(t)
	// or it is found half written
	a, b := w.add("a", func(c *Config) { c.Timing.Poll, c.Timing.Scan = time.Hour, time.Hour }), w.add("b", nil)
	w.quiet()
	jid := w.jid()
	a.python(jid, minionsFile, list("m1"))
	a.python(jid, loadFile, load(jid, true))
	data := ret("one")
	a.python(jid, "m1/"+returnFile, data)
	a.store.Unasked(jid, "m1", Return{Data: data})
	same(t, jid, 4, a, b)
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	if a.store.watched[jid] != nil {
		t.Error("the job is watched")
	}
}

// Of an id that two masters gave to different jobs, each node keeps what its own master has.
func TestContestedJobsAreNotMixed(t *testing.T) {
	w := newWorld(t)
	two := w.jid()
	contested := func(c *Config) { c.Contested = func(jid string) bool { return jid == two } }
	a, b := w.add("a", contested), w.add("b", contested)
	a.publish(two, "m1")
	a.ret(two, "m1", "of a")
	b.publish(two, "m2")
	b.ret(two, "m2", "of b")
	other := w.jid()
	a.publish(other, "m1")
	same(t, other, 3, a, b) // which comes after
	w.quiet()
	for n, foreign := range map[*testNode]string{a: "m2/" + returnFile, b: "m1/" + returnFile} {
		if _, ok := n.content(two)[foreign]; ok {
			t.Errorf("%s has %s of the other job", n.store.cfg.Self, foreign)
		}
	}
}

// What minions make of ids with a suffix is found as long as the job is there, also after a restart.
func TestWholeJobID(t *testing.T) {
	w := newWorld(t)
	a := w.add("a", nil)
	cut, twice := w.jid(), w.jid()
	for _, jid := range []string{cut + "_1", twice + "_1", twice + "_2"} {
		a.publish(jid, "m1")
	}
	check := func() {
		t.Helper()
		w.quiet()
		if jid, ok := a.store.Whole(cut); !ok || jid != cut+"_1" {
			t.Errorf("%q, %v", jid, ok)
		}
		for _, none := range []string{twice, cut + "_1", w.jid()} {
			if jid, ok := a.store.Whole(none); ok {
				t.Errorf("%s is %s", none, jid)
			}
		}
	}
	check()
	w.restart(func() {})
	check()
}
