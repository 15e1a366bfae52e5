package datacache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestTouched_OnEveryMaster(t *testing.T) {
	w, a, b, c := three(t)
	for i, n := range []*testNode{a, b, c, a} {
		id := fmt.Sprint("web", i)
		w.setKey(id, "key of "+id)
		grains, pillar := texts("os", string(n.id)), texts("role", id)
		n.stock(id, grains, pillar)
		n.store.Touched(id)
		w.everywhere(id, grains, pillar)
	}
	// The later one wins, wherever it was.
	grains, pillar := texts("os", "new"), texts("role", "new")
	c.stock("web0", grains, pillar)
	c.store.Touched("web0")
	w.everywhere("web0", grains, pillar)
}

// What is newer counts as newer, though the clock was ahead when the older was stamped and a restart has put it back.
func TestTheClockIsPutBack(t *testing.T) {
	w, a, _, c := three(t)
	w.setKey("web1", "k")
	a.stock("web1", texts("os", "old"), texts("a", "old"))
	w.everywhere("web1", texts("os", "old"), texts("a", "old"))
	w.mu.Lock()
	w.behind = time.Hour
	w.mu.Unlock()
	c.stock("web1", texts("os", "new"), texts("a", "new"))
	c.store.Touched("web1")
	w.everywhere("web1", texts("os", "new"), texts("a", "new"))
}

// What is left of a minion's data on one master is no reason for that to go without: grains that were cleared beside a
// pillar that was not (3008), a file cut short by a full disk.
func TestStore_ReplacesDamagedData(t *testing.T) {
	w, _, _, _ := three(t)
	w.setKey("web1", "k")
	grains, pillar := texts("os", "x"), texts("a", "b")
	for _, n := range w.nodes {
		n.stock("web1", grains, pillar)
		n.store.Touched("web1")
		w.everywhere("web1", grains, pillar)
		for what, spoil := range map[string]func(string) error{
			"removed": os.Remove, "empty": func(name string) error { return os.Truncate(name, 0) },
			"cut short": func(name string) error { return os.Truncate(name, 3) },
		} {
			n.store.mu.Lock()
			names := n.store.layout.names("web1")
			err := spoil(filepath.Join(n.master.CacheDir, names[0]))
			for _, name := range names { // some time ago
				_ = os.Chtimes(filepath.Join(n.master.CacheDir, name), time.Time{}, time.Now().Add(-2*halfway))
			}
			n.store.mu.Unlock()
			require.NoError(t, err)
			n.store.Touched("web1")
			w.poll(string(n.id)+" has what was "+what,
				func() bool { g, p := n.has("web1"); return bytes.Equal(g, grains) && bytes.Equal(p, pillar) })
		}
	}
	w.everywhere("web1", grains, pillar)
}

// A master of 3008 writes a minion's pillar, and then its grains: a record that comes between the two takes nothing
// away.
func TestMerge_MasterIsWriting(t *testing.T) {
	w, _, _, c := three(t)
	w.setKey("web1", "k")
	turn := c.store.turns.of("web1") // nobody looks before the record comes
	turn.Lock()
	c.file(pillarName("web1", ""), texts("p", "new"))
	root, err := c.store.disk.root()
	require.NoError(t, err)
	defer root.Close()
	r := record{id: "web1", stamp: w.now(), key: fingerprint("k"),
		data: data{main: texts("g", "old"), pillars: []pillar{{raw: texts("p", "old")}}}}
	_, err = c.store.merge(root, r, c.store.cfg.Keys.Life("web1"))
	turn.Unlock()
	check.ErrorIs(t, err, errChanged, "merge")
	c.file(grainsBank+"/web1.p", texts("g", "new"))
	c.store.Touched("web1")
	w.everywhere("web1", texts("g", "new"), texts("p", "new"))
}

// A master of another version gets the data in its own layout.
func TestLayout_OtherVersion(t *testing.T) {
	w, a, _, c := three(t)
	for _, id := range []string{"web1", "web2"} {
		w.setKey(id, "k")
		a.stock(id, texts("v", id), texts("p", "1"))
		w.everywhere(id, texts("v", id), texts("p", "1"))
	}
	for _, major := range []int{3006, 3008} { // and back
		c.close()
		c.master.Major = major
		c.open()
		for _, id := range []string{"web1", "web2"} {
			w.everywhere(id, texts("v", id), texts("p", "1"))
		}
	}
}

// A node that lost its table does not offer old data as new.
func TestStore_TableLost(t *testing.T) {
	w, a, _, c := three(t)
	w.setKey("web1", "k")
	a.stock("web1", texts("v", "1"), texts("p", "1"))
	w.everywhere("web1", texts("v", "1"), texts("p", "1"))
	c.close()
	require.NoError(t, os.Remove(filepath.Join(c.state, Data.table())))
	a.stock("web1", texts("v", "2"), texts("p", "2"))
	a.store.Touched("web1")
	w.poll("news", func() bool { g, _ := w.nodes["b"].has("web1"); return bytes.Equal(g, texts("v", "2")) })
	c.open()
	w.everywhere("web1", texts("v", "2"), texts("p", "2"))
}

func TestStore_DeletesDataWithKey(t *testing.T) {
	w, a, b, c := three(t)
	w.setKey("web1", "k")
	w.setKey("web2", "k")
	a.stock("web1", texts("v", "1"), texts("p", "1"))
	a.stock("web2", texts("v", "1"), texts("p", "1"))
	for _, id := range []string{"web1", "web2"} {
		w.everywhere(id, texts("v", "1"), texts("p", "1"))
	}
	c.file("mine/web1.p", []byte{0x80})
	b.file("minions/web1/mine.p", []byte{0x80})
	w.mu.Lock()
	w.other["web2"] = true // rejected: salt-key keeps the data
	w.mu.Unlock()
	w.setKey("web2", "")
	w.setKey("web1", "")
	w.everywhere("web1", nil, nil)
	w.everywhere("web2", texts("v", "1"), texts("p", "1"))
	for _, path := range []string{
		filepath.Join(b.master.CacheDir, "minions/web1"), filepath.Join(c.master.CacheDir, "mine/web1.p"),
		filepath.Join(c.master.CacheDir, "pillar/web1.p"),
	} {
		w.poll(path+" to go", func() bool { // what a purge removes last
			_, err := os.Stat(path)
			return os.IsNotExist(err)
		})
	}
}

// Another minion with the same id does not inherit the data of the deleted one.
func TestStore_OtherKeySameID(t *testing.T) {
	w, a, b, c := three(t)
	w.setKey("web1", "old")
	a.stock("web1", texts("v", "1"), texts("p", "1"))
	w.everywhere("web1", texts("v", "1"), texts("p", "1"))
	c.close()
	w.setKey("web1", "")
	for _, n := range []*testNode{a, b} {
		w.poll("purged", func() bool { g, _ := n.has("web1"); return g == nil })
	}
	w.setKey("web1", "new")
	c.open()
	w.everywhere("web1", nil, nil)
}

// The very same key was deleted and accepted again while a node was away: what it has of the minion does not come back.
func TestStore_SameKeyAcceptedAgain(t *testing.T) {
	for _, quickly := range []bool{false, true} {
		t.Run(fmt.Sprintf("before anybody could look: %t", quickly), func(t *testing.T) {
			w, a, b, c := three(t)
			w.setKey("web1", "k")
			w.setKey("web2", "k")
			a.stock("web1", texts("v", "1"), texts("p", "1"))
			w.everywhere("web1", texts("v", "1"), texts("p", "1"))
			c.close()
			if quickly {
				w.mu.Lock()
				w.lives["web1"]++
				w.mu.Unlock()
			} else {
				w.setKey("web1", "")
			}
			for _, n := range []*testNode{a, b} {
				w.poll("purged", func() bool { g, _ := n.has("web1"); return g == nil })
			}
			w.setKey("web1", "k")
			c.open()
			c.stock("web2", texts("v", "2"), texts("p", "2")) // whoever has this has heard of all that c has
			w.everywhere("web2", texts("v", "2"), texts("p", "2"))
			w.everywhere("web1", nil, nil)
			b.stock("web1", texts("v", "3"), texts("p", "3"))
			w.everywhere("web1", texts("v", "3"), texts("p", "3"))
		})
	}
}

func TestPreservedData(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t)
	t.Cleanup(w.close)
	n := w.add("a", 3006, dir)
	n.close()
	n.master.Preserve = true
	n.open()
	w.setKey("web1", "k")
	n.stock("web1", texts("v", "1"), texts("p", "1"))
	w.poll("seen", func() bool { return n.store.Status().Minions == 1 })
	w.setKey("web1", "")
	w.poll("forgotten", func() bool { return n.store.Status().Minions == 0 })
	if g, _ := n.has("web1"); g == nil {
		t.Error("the data are gone")
	}
}

func TestPush_BeforeKey(t *testing.T) {
	w, a, _, c := three(t)
	r := record{id: "web1", stamp: w.now(), key: fingerprint("k"), data: data{main: texts("v", "1")}}
	if _, err := w.Send(context.Background(), a.id, "c", encodeRecords(Data, []record{r})); err != nil {
		t.Fatal(err)
	}
	if g, _ := c.has("web1"); g != nil {
		t.Fatal("data of a stranger were taken")
	}
	a.stock("web1", texts("v", "1"), texts("p", "1"))
	w.setKey("web1", "k")
	w.everywhere("web1", texts("v", "1"), texts("p", "1"))
}

func TestRefused(t *testing.T) {
	w, a, _, c := three(t)
	w.setKey("web1", "k")
	good := record{id: "web1", stamp: w.now(), key: fingerprint("k"), data: data{main: texts("v", "1")}}
	change := func(f func(*record)) []byte {
		r := good
		f(&r)
		return encodeRecords(Data, []record{r})
	}
	for name, body := range map[string][]byte{
		"another key":   change(func(r *record) { r.key = fingerprint("x") }),
		"far future":    change(func(r *record) { r.stamp = ^uint64(0) >> 1 }),
		"no map":        change(func(r *record) { r.data.main = []byte{0x90} }),
		"half a map":    change(func(r *record) { r.data.main = r.data.main[:4] }),
		"path":          change(func(r *record) { r.id = "../web1" }),
		"hidden":        change(func(r *record) { r.id = ".web1" }),
		"env with path": change(func(r *record) { r.data.pillars = []pillar{{"a/b", texts("a", "b")}} }),
	} {
		_, _ = w.Send(context.Background(), "a", "c", body)
		if g, _ := c.has("web1"); g != nil {
			t.Fatalf("%s: taken", name)
		}
	}
	if _, err := w.Send(context.Background(), a.id, "c", encodeRecords(Data, []record{good})); err != nil {
		t.Fatal(err)
	}
	if g, _ := c.has("web1"); !bytes.Equal(g, good.data.main) {
		t.Fatal("the good one was refused")
	}
}

func TestSymlinksAreNotFollowedOut(t *testing.T) {
	w, a, b, _ := three(t)
	outside := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(b.master.CacheDir, "minions")))
	w.setKey("web1", "k")
	a.stock("web1", texts("v", "1"), texts("p", "1"))
	w.poll("c has it", func() bool { g, _ := w.nodes["c"].has("web1"); return g != nil })
	left, err := os.ReadDir(outside)
	if err != nil || len(left) > 0 {
		t.Errorf("written outside: %v, %v", left, err)
	}
}

func TestScan_ReceivedKeepStamp(t *testing.T) {
	w, a, b, c := three(t)
	w.setKey("web1", "k")
	a.stock("web1", texts("v", "1"), texts("p", "1"))
	w.everywhere("web1", texts("v", "1"), texts("p", "1"))
	for _, n := range []*testNode{b, c} {
		n.store.scan()
		n.store.lookAt([]string{"web1"})
		if got, want := n.stamp("web1"), a.stamp("web1"); got != want {
			t.Errorf("%s has stamp %d, not %d", n.id, got, want)
		}
	}
}

func TestPillarenv(t *testing.T) {
	w, a, _, c := three(t)
	d := w.add("d", 3008, filepath.Dir(c.state)+"-d")
	w.setKey("web1", "k")
	c.file("pillar/web1:dev.p", texts("env", "dev"))
	c.stock("web1", texts("v", "1"), texts("env", "none"))
	w.poll("d has the pillar of dev", func() bool {
		raw, _ := os.ReadFile(filepath.Join(d.master.CacheDir, "pillar/web1:dev.p"))
		return bytes.Equal(raw, texts("env", "dev"))
	})
	w.everywhere("web1", texts("v", "1"), texts("env", "none"))
	_ = a
}

// What a 3006 master has no place for is not lost on the way through it.
func TestPush_WholeRecordWins(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t)
	t.Cleanup(w.close)
	a := w.add("a", 3006, dir+"/a")
	w.setKey("web1", "k")
	whole := record{id: "web1", stamp: w.now(), key: fingerprint("k"), data: data{
		main: texts("v", "1"), pillars: []pillar{{"", texts("env", "none")}, {"dev", texts("env", "dev")}},
	}}
	if _, err := w.Send(context.Background(), a.id, "a", encodeRecords(Data, []record{whole})); err != nil {
		t.Fatal(err)
	}
	d := w.add("d", 3008, dir+"/d")
	dev := filepath.Join(d.master.CacheDir, "pillar/web1:dev.p")
	w.poll("d has what a has", func() bool { _, p := d.has("web1"); return p != nil })
	if _, err := os.Stat(dev); err == nil {
		t.Fatal("a was expected to know one pillar only")
	}
	if _, err := w.Send(context.Background(), d.id, "d", encodeRecords(Data, []record{whole})); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(dev); err != nil || !bytes.Equal(raw, texts("env", "dev")) {
		t.Errorf("the whole record was not taken: %v", err)
	}
}

func TestStore_PillarCache(t *testing.T) {
	w, a, _, c := three(t)
	c.close()
	var before [][]byte // what the master had of the pillar when it was told
	var told sync.Mutex
	c.comes = func(id string) {
		_, p := c.has(id)
		told.Lock()
		defer told.Unlock()
		before = append(before, p)
	}
	c.open()
	check.Equal(t, c.store.Status().PillarsOff, "")
	w.setKey("web1", "k")
	a.stock("web1", texts("v", "1"), texts("p", "1"))
	w.everywhere("web1", texts("v", "1"), texts("p", "1"))
	a.stock("web1", texts("v", "2"), texts("p", "1")) // the pillar stays
	w.everywhere("web1", texts("v", "2"), texts("p", "1"))
	a.stock("web1", texts("v", "2"), texts("p", "2"))
	w.everywhere("web1", texts("v", "2"), texts("p", "2"))
	told.Lock()
	defer told.Unlock()
	if want := [][]byte{nil, texts("p", "1")}; !slices.EqualFunc(before, want, bytes.Equal) {
		t.Errorf("told with %q, not %q", before, want)
	}
}

func TestOff(t *testing.T) {
	for want, change := range map[string]func(*Master){
		"minion_data_cache": func(m *Master) { m.DataCache = false },
		"redis":             func(m *Master) { m.Driver = "redis" },
	} {
		m := master(3006, "")
		change(&m)
		check.Contains(t, m.off(Data), want, "reason")
	}
}

func TestFilesLookLikeStock(t *testing.T) {
	w, a, b, c := three(t)
	w.setKey("web1", "k")
	a.stock("web1", texts("v", "1"), texts("p", "1"))
	w.everywhere("web1", texts("v", "1"), texts("p", "1"))
	for n, names := range map[*testNode][]string{b: {"minions/web1/data.p"}, c: {"grains/web1.p", "pillar/web1.p"}} {
		for _, name := range names {
			path := filepath.Join(n.master.CacheDir, name)
			info, err := os.Stat(path)
			if err != nil || info.Mode() != fileMode {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
			names, err := os.ReadDir(filepath.Dir(path))
			if err != nil || len(names) != 1 {
				t.Errorf("beside %s: %v, %v", name, names, err)
			}
			if age := time.Since(info.ModTime()); age < 0 || age > time.Hour {
				t.Errorf("%s: time %s", name, info.ModTime())
			}
		}
	}
}

// A master that writes right when a record comes in does not lose what it wrote.
func TestReplaceLosesNothing(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	d := disk{dir: dir, uid: -1, gid: -1}
	is := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, not %q: %v", name, got, want, err)
		}
	}
	at := time.Now()
	if _, err := d.put(root, "x/a.p", []byte("1"), nil, at); err != nil {
		t.Fatal(err)
	}
	is("x/a.p", "1")
	if _, err := d.put(root, "x/a.p", []byte("2"), nil, at); !errors.Is(err, errChanged) {
		t.Errorf("a new file: %v", err)
	}
	is("x/a.p", "1")
	if _, err := d.put(root, "x/a.p", []byte("3"), []byte("0"), at); !errors.Is(err, errChanged) {
		t.Errorf("another file: %v", err)
	}
	is("x/a.p", "1")
	if _, err := d.put(root, "x/gone.p", []byte("3"), []byte("0"), at); !errors.Is(err, errChanged) {
		t.Errorf("a removed file: %v", err)
	}
	if _, err := d.put(root, "x/a.p", []byte("4"), []byte("1"), at); err != nil {
		t.Fatal(err)
	}
	is("x/a.p", "4")
	if names, err := os.ReadDir(filepath.Join(dir, "x")); err != nil || len(names) != 1 {
		t.Errorf("left over: %v, %v", names, err)
	}
}

// A master writes the files of a minion one after the other; the clock of the file system may stand still meanwhile,
// and what is new be as long as what was there.
func TestScan_HalfWritten(t *testing.T) {
	w, _, _, c := three(t)
	w.setKey("m1", "k")
	for i, v := range []string{"1", "2"} {
		at := time.Now().Add(time.Duration(i-2) * time.Minute)
		for _, name := range []string{"pillar/m1.p", "grains/m1.p"} {
			path := filepath.Join(c.master.CacheDir, name)
			require.NoError(t, errors.Join(
				os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path+".tmp", texts(name[:1], v), 0o600),
				os.Chtimes(path+".tmp", at, at), os.Rename(path+".tmp", path),
			))
			c.store.scan()
			if i > 0 && name == "pillar/m1.p" {
				w.everywhere("m1", texts("g", "1"), texts("p", v))
			}
		}
		w.everywhere("m1", texts("g", v), texts("p", v))
	}
}

// The process that comes next knows of what is on disk what the table says, so nothing may be written after that was
// saved.
func TestClosedStoreWritesNothing(t *testing.T) {
	w, a, _, _ := three(t)
	w.setKey("m1", "k")
	s := a.store
	turn := s.turns.of("m1")
	turn.Lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.close()
	}()
	w.poll("it is closing", func() bool { return s.Closed() != nil })
	select {
	case <-done:
		t.Error("closed while it is somebody's turn")
	default:
	}
	got := make(chan outcome, 1)
	go func() {
		what, _ := s.accept(must(s.disk.root()), record{id: "m1", stamp: w.now(), key: fingerprint("k"),
			data: data{main: texts("g", "1")}})
		got <- what
	}()
	turn.Unlock()
	<-done
	check.Equal(t, <-got, failed)
	if g, _ := a.has("m1"); g != nil {
		t.Errorf("%q", g)
	}
}
