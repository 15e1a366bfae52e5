package datacache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/fsync/msgpack"
	"saltclusterd/fsync/replica"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// edited is an Edit that makes a mine of what was there and something more.
func edited(f func(now []byte) []byte) Edit {
	return func(now []byte) ([]byte, bool, error) { return f(now), true, nil }
}

// always is an Edit that makes a mine what it says.
func always(then []byte) Edit { return edited(func([]byte) []byte { return then }) }

// mineNode is a node alone, with a master's mines.
func mineNode(t testing.TB, major int, quick bool) (*world, *testNode) {
	dir, w := t.TempDir(), newWorld(t)
	w.kind = Mine
	if !quick {
		w.scan, w.pace = 0, replica.Pace{}
	}
	t.Cleanup(w.close) // before the directory goes
	return w, w.add("a", major, dir)
}

// change has a node change a mine.
func (n *testNode) change(id string, edit Edit) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := n.store.Change(ctx, id, edit, time.Minute)
	if ctx.Err() != nil {
		n.w.t.Fatalf("%s waited in vain", n.id)
	}
	return err
}

func (n *testNode) mustChange(id string, edit Edit) {
	n.w.t.Helper()
	require.NoError(n.w.t, n.change(id, edit), n.id)
}

// meet waits until the nodes reach each other.
func (w *world) meet() {
	w.t.Helper()
	for _, n := range w.nodes {
		w.poll("peers of "+string(n.id), func() bool {
			peers := n.store.Status().Peers
			for _, p := range peers {
				if p.Err != "" {
					return false
				}
			}
			return len(peers) == len(w.nodes)-1
		})
	}
}

// A change is on every master when Change returns.
func TestChange_OnEveryMaster(t *testing.T) {
	w, a, b, c := threeOf(t, Mine)
	w.meet()
	on := func(what string, want []byte) {
		t.Helper()
		for _, n := range w.nodes {
			if got, _ := n.has("web1"); !bytes.Equal(got, want) {
				t.Errorf("%s: %s has %q", what, n.id, got)
			}
		}
	}
	w.setKey("web1", "k")
	for _, n := range []*testNode{a, b, c} {
		n.mustChange("web1", always(texts("by", string(n.id))))
		on("written by "+string(n.id), texts("by", string(n.id)))
		n.mustChange("web1", edited(func(now []byte) []byte {
			check.EqualSlices(t, now, texts("by", string(n.id)), n.id, "changes")
			return texts("by", "again")
		}))
		on("again by "+string(n.id), texts("by", "again"))
		n.mustChange("web1", always(nil))
		on("removed by "+string(n.id), nil)
		n.mustChange("web1", always(nil))
	}
	for _, n := range w.nodes {
		if left, err := filepath.Glob(filepath.Join(n.master.CacheDir, "*", "*", tempPrefix+"*")); err != nil ||
			len(left) > 0 {
			t.Errorf("%s: %q, %v", n.id, left, err)
		}
	}
}

// An operator clears a mine on one master, and before that is seen the minion sends it to another one: it is on all of
// them, the same or not.
func TestChange_AfterClear(t *testing.T) {
	w, a, b, c := threeAtRest(t)
	w.meet()
	w.setKey("web1", "k")
	for _, master := range []*testNode{a, b, c} {
		for _, then := range [][]byte{texts("f", "1"), texts("f", "1"), texts("f", "2")} {
			for _, sent := range []*testNode{a, b, c} {
				sent.mustChange("web1", always(texts("f", "1")))
				require.NoError(t, os.Remove(filepath.Join(master.master.CacheDir,
					newLayout(Mine, master.master).names("web1")[0])))
				sent.mustChange("web1", always(then))
				for _, n := range w.nodes {
					n.store.scan()
				}
				for _, n := range w.nodes {
					w.poll(fmt.Sprintf("the mine on %s, cleared on %s, sent to %s: %q", n.id, master.id, sent.id, then),
						func() bool { got, _ := n.has("web1"); return bytes.Equal(got, then) })
				}
			}
		}
	}
	// Cleared when it had been sent, it is gone.
	require.NoError(t, os.Remove(filepath.Join(c.master.CacheDir, newLayout(Mine, c.master).names("web1")[0])))
	c.store.scan()
	for _, n := range w.nodes {
		w.poll("no mine on "+string(n.id), func() bool { got, _ := n.has("web1"); return got == nil })
	}
}

// A master writes a mine anew when an operator clears it of a function. What its minion sends to another one then is
// later.
func TestChange_AfterRewrite(t *testing.T) {
	w, a, b, c := threeAtRest(t)
	w.meet()
	w.setKey("web1", "k")
	rewrite := func(n *testNode, at time.Time) {
		path := filepath.Join(n.master.CacheDir, newLayout(Mine, n.master).names("web1")[0])
		require.NoError(t, errors.Join(os.WriteFile(path, texts("rest", "1"), 0o600), os.Chtimes(path, at, at)))
	}
	for i, master := range []*testNode{a, b, c} {
		for k, sent := range []*testNode{a, b, c} {
			then := texts("f", fmt.Sprint(i, k))
			sent.mustChange("web1", always(texts("f", "1")))
			for _, n := range w.nodes {
				w.poll("the mine on "+string(n.id), func() bool {
					got, _ := n.has("web1")
					return bytes.Equal(got, texts("f", "1"))
				})
			}
			rewrite(master, time.Now().Add(-time.Second))
			sent.mustChange("web1", always(then))
			for _, n := range w.nodes {
				n.store.scan()
			}
			for _, n := range w.nodes {
				w.poll(fmt.Sprintf("the mine on %s, rewritten on %s, sent to %s", n.id, master.id, sent.id),
					func() bool { got, _ := n.has("web1"); return bytes.Equal(got, then) })
			}
		}
	}
	rewrite(c, time.Now().Add(time.Second)) // what was written after it had been sent stays
	a.mustChange("web1", always(texts("f", "last")))
	c.store.scan()
	for _, n := range w.nodes {
		w.poll("the rest on "+string(n.id), func() bool {
			got, _ := n.has("web1")
			return bytes.Equal(got, texts("rest", "1"))
		})
	}
}

// What a change writes looks as if the master had written it, and no scan takes it for news.
func TestChangeLooksLikeTheMasters(t *testing.T) {
	dir, w := t.TempDir(), newWorld(t)
	w.kind = Mine
	t.Cleanup(w.close) // before the directory goes
	for _, major := range []int{3006, 3008} {
		n := w.add("a", major, filepath.Join(dir, fmt.Sprint(major)))
		w.setKey("web1", "k")
		n.mustChange("web1", always(texts("f", "1")))
		path := filepath.Join(n.master.CacheDir, newLayout(Mine, n.master).names("web1")[0])
		info, err := os.Stat(path)
		if err != nil || info.Mode() != fileMode || time.Since(info.ModTime()) > time.Minute {
			t.Fatalf("%d: %v, %v", major, info, err)
		}
		if dir, err := os.Stat(filepath.Dir(path)); err != nil || dir.Mode().Perm() != dirMode {
			t.Errorf("%d: %v, %v", major, dir, err)
		}
		first := n.stamp("web1")
		old := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(path, old, old))
		n.mustChange("web1", always(texts("f", "1"))) // the same once more
		if info, err = os.Stat(path); err != nil || time.Since(info.ModTime()) > time.Minute {
			t.Errorf("%d: not renewed: %v, %v", major, info, err)
		}
		stamp := n.stamp("web1")
		if stamp <= first {
			t.Errorf("%d: what was sent again is not later: %d, then %d", major, first, stamp)
		}
		n.store.scan()
		if got := n.stamp("web1"); got != stamp {
			t.Errorf("%d: what stayed the same is news to a scan: %d after %d", major, got, stamp)
		}
		n.close()
	}
}

func (n *testNode) stamp(id string) uint64 {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	return n.store.table[id].Stamp
}

func TestChangeNotHere(t *testing.T) {
	dir, w := t.TempDir(), newWorld(t)
	w.kind = Mine
	t.Cleanup(w.close) // before the directory goes
	n := w.add("a", 3007, dir)
	w.setKey("web1", "k")
	w.setKey("web2", "k")
	w.setKey("web3", "k")
	n.file("minions/web2/mine.p", []byte("\x93\x01\x02\x03"))
	n.file("minions/web3.p", texts("mine", "x"))
	for name, id := range map[string]string{"no key": "nobody", "no map": "web2", "a bank that is a file": "web3",
		"no name of a file": "a/b"} {
		check.ErrorIs(t, n.change(id, always(texts("f", "1"))), ErrNotHere, name)
	}
	for name, then := range map[string][]byte{"large": sized(maxEdit + 1), "many": counted(maxEntries + 1)} {
		check.ErrorIs(t, n.change("web1", always(then)), ErrNotHere, "too", name)
	}
	broken := errors.New("broken")
	if err := n.change("web1", func([]byte) ([]byte, bool, error) { return nil, true, broken }); !errors.Is(err, broken) {
		t.Errorf("an error of the edit: %v", err)
	}
	if err := n.change("web1", func([]byte) ([]byte, bool, error) { return texts("f", "1"), false, nil }); err != nil {
		t.Errorf("nothing to write: %v", err)
	}
	if got, _ := n.has("web1"); got != nil {
		t.Errorf("written: %q", got)
	}
	n.close()
	data := &Store{cfg: Config{Kind: Data}}
	check.ErrorIs(t, data.Change(t.Context(), "web1", always(nil), time.Minute), ErrNotHere, "grains")
}

// sized is a mine of so many bytes.
func sized(n int) []byte {
	head := append(msgpack.AppendShort([]byte{0x81}, "f"), 0xdb)
	head = binary.BigEndian.AppendUint32(head, uint32(n-len(head)-4))
	return append(head, make([]byte, n-len(head))...)
}

// counted is a mine of so many entries.
func counted(n int) []byte {
	out := binary.BigEndian.AppendUint32([]byte{0xdf}, uint32(n))
	for i := range n {
		out = append(msgpack.AppendShort(out, strconv.Itoa(i)), 1)
	}
	return out
}

// A mine that takes long to change is left to the master: nobody is asked what becomes of it.
func TestChangeOfLargeMines(t *testing.T) {
	w := newWorld(t)
	w.kind = Mine
	dir := t.TempDir()
	t.Cleanup(w.close) // before the directory goes
	n := w.add("a", 3007, dir)
	w.setKey("web1", "k")
	for _, c := range []struct {
		name string
		now  []byte
		here bool
	}{
		{"large", sized(maxEdit), true},
		{"too large", sized(maxEdit + 1), false},
		{"many", counted(maxEntries), true},
		{"too many", counted(maxEntries + 1), false},
	} {
		n.mine("web1", c.now)
		asked := false
		err := n.change("web1", func(now []byte) ([]byte, bool, error) {
			asked = true
			return texts("by", "us"), true, nil
		})
		if asked != c.here || c.here && err != nil || !c.here && !errors.Is(err, ErrNotHere) {
			t.Errorf("%s: asked %v, %v", c.name, asked, err)
		}
		want := c.now
		if c.here {
			want = texts("by", "us")
		}
		if got, _ := n.has("web1"); !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes are there", c.name, len(got))
		}
	}
}

// Nobody's entry is lost: neither those of changes that meet nor what the master, which locks nothing, writes between
// an edit's reading and our writing.
func TestChangesMeet(t *testing.T) {
	dir, w := t.TempDir(), newWorld(t)
	w.kind = Mine
	t.Cleanup(w.close) // before the directory goes
	n := w.add("a", 3006, dir)
	w.setKey("web1", "k")
	const many = 20
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			n.mustChange("web1", edited(func(now []byte) []byte {
				return append([]byte{0x81, 0xa1, 'n', 0xdd, 0, 0, 0, byte(count(now) + 1)}, make([]byte, count(now)+1)...)
			}))
		})
	}
	wg.Wait()
	if got, _ := n.has("web1"); count(got) != many {
		t.Errorf("%d of %d changes are there", count(got), many)
	}
	between := true
	n.mustChange("web1", edited(func(now []byte) []byte {
		if between {
			between = false
			n.mine("web1", texts("by", "the master"))
			return texts("by", "nobody")
		}
		check.EqualSlices(t, now, texts("by", "the master"), "the second attempt sees")
		return texts("by", "both")
	}))
	if got, _ := n.has("web1"); !bytes.Equal(got, texts("by", "both")) {
		t.Errorf("there is %q", got)
	}
}

// count is how long the list is that TestChangesMeet makes longer.
func count(mine []byte) int {
	if mine == nil {
		return 0
	}
	return int(mine[7])
}

// apart names minions, with keys, whose turns are not the same.
func (n *testNode) apart(many int) (ids []string) {
	for i := 0; len(ids) < many; i++ {
		id := fmt.Sprintf("web%d", i)
		if !slices.ContainsFunc(ids, func(other string) bool { return n.store.turns.of(id) == n.store.turns.of(other) }) {
			n.w.setKey(id, "k")
			ids = append(ids, id)
		}
	}
	return ids
}

// slowly begins a change of a mine to itself, and returns when it is at work; finish lets it end.
func (n *testNode) slowly(id string) (finish func()) {
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- n.change(id, edited(func(now []byte) []byte {
			close(begun)
			<-end
			return now
		}))
	}()
	<-begun
	return func() {
		n.w.t.Helper()
		close(end)
		require.NoError(n.w.t, <-done)
	}
}

// Minions do not wait for each other's mines, nor a small one for a large one, and large ones take turns.
func TestChange_SmallBesideLarge(t *testing.T) {
	dir, w := t.TempDir(), newWorld(t)
	w.kind = Mine
	t.Cleanup(w.close) // before the directory goes
	n := w.add("a", 3008, dir)
	ids := n.apart(3)
	n.mine(ids[0], sized(largeFile+1))
	n.mine(ids[1], sized(largeFile+1))
	finish := n.slowly(ids[0])
	n.mustChange(ids[2], always(texts("f", "1")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.store.Change(ctx, ids[1], always(nil), time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("a second large one, for which nobody waits: %v", err)
	}
	finish()
	n.mustChange(ids[1], always(texts("f", "2")))
	for i, want := range [][]byte{sized(largeFile + 1), texts("f", "2"), texts("f", "1")} {
		if got, _ := n.has(ids[i]); !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes", ids[i], len(got))
		}
	}
}

// Those who wait for one mine keep no place from others.
func TestChange_ManyWaitForOneMine(t *testing.T) {
	_, n := mineNode(t, 3008, true)
	ids := n.apart(2)
	n.mine(ids[0], sized(largeFile+1))
	finish := n.slowly(ids[0])
	var wg sync.WaitGroup
	for range maxEdits {
		wg.Go(func() { n.mustChange(ids[0], edited(func(now []byte) []byte { return now })) })
	}
	n.w.poll("they wait", func() bool { return testutil.ToFloat64(n.store.metrics.waiting) == maxEdits })
	n.mustChange(ids[1], always(texts("f", "1")))
	finish()
	wg.Wait()
	check.Equal(t, testutil.ToFloat64(n.store.metrics.waiting), 0, "wait")
}

// Who waits for a mine ceases to when its request does, and it is not said that a master might change it: that would
// write between those that wait.
func TestChange_RequestCancelled(t *testing.T) {
	w, n := mineNode(t, 3008, true)
	w.setKey("web1", "k")
	n.mine("web1", texts("f", "1"))
	finish := n.slowly("web1")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- n.store.Change(ctx, "web1", always(nil), 0) }()
	w.poll("it waits", func() bool { return testutil.ToFloat64(n.store.metrics.waiting) == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotHere) {
		t.Error(err)
	}
	finish()
}

// A look at all minions stops at the one that is at work, and keeps no other one's turn.
func TestScan_OneTurnAtMost(t *testing.T) {
	for _, major := range []int{3007, 3008} {
		_, n := mineNode(t, major, false)
		ids := n.apart(3)
		finish := n.slowly(ids[1])
		n.mine(ids[1], texts("f", "0"))
		var wg sync.WaitGroup
		wg.Go(n.store.scan)
		wg.Go(func() {
			if _, err := n.store.Ledger(); err != nil {
				t.Error(err)
			}
		})
		for i := range 100 {
			n.mustChange(ids[i%2*2], always(texts("f", strconv.Itoa(i))))
		}
		finish()
		wg.Wait()
	}
}

// Large files are read by few at a time, small ones at any.
func TestFewReadLargeFiles(t *testing.T) {
	_, n := mineNode(t, 3008, false)
	ids := n.apart(2)
	n.mine(ids[0], sized(largeFile+1))
	n.mine(ids[1], sized(largeFile))
	for range maxReads {
		n.store.reads <- struct{}{}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.store.lookAt(ids[:1])
	}()
	n.w.poll("it is its turn", func() bool { return len(n.store.turns.of(ids[0])) == 1 })
	n.store.lookAt(ids[1:])
	_, small := n.store.entry(ids[1])
	if _, large := n.store.entry(ids[0]); !small || large {
		t.Errorf("read: small %v, large %v", small, large)
	}
	for range maxReads {
		<-n.store.reads
	}
	<-done
	if _, large := n.store.entry(ids[0]); !large {
		t.Error("never read")
	}
}

// A mine that becomes large waits as large ones do.
func TestChange_BecomesLarge(t *testing.T) {
	_, n := mineNode(t, 3008, true)
	ids := n.apart(2)
	n.mine(ids[0], sized(largeFile+1))
	n.mine(ids[1], texts("f", "1"))
	finish := n.slowly(ids[0])
	ctx, cancel := context.WithCancel(t.Context())
	err := n.store.Change(ctx, ids[1], edited(func([]byte) []byte {
		cancel() // it waits in vain for the place
		return sized(largeFile + 1)
	}), time.Minute)
	if got, _ := n.has(ids[1]); !errors.Is(err, context.Canceled) || !bytes.Equal(got, texts("f", "1")) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	finish()
	n.mustChange(ids[1], always(sized(largeFile+1)))
	if got, _ := n.has(ids[1]); len(got) != largeFile+1 {
		t.Errorf("%d bytes", len(got))
	}
}

// What the master writes while a change is at work counts, and if the change cannot read it.
func TestChangeThatMeetsTheMaster(t *testing.T) {
	large, large2 := sized(maxFile+1), texts("f", "3")
	for _, c := range []struct {
		name   string
		now    []byte // what the change is from
		master []byte // what the master writes meanwhile
		then   []byte // what the change makes of now
		want   []byte
		err    error
	}{
		{"too large", texts("f", "1"), large, texts("f", "2"), large, ErrNotHere},
		{"too large, removed", texts("f", "1"), large, nil, large, ErrNotHere},
		{"of equal size, renewed", texts("f", "1"), large2, texts("f", "1"), large2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, n := mineNode(t, 3008, false)
			w.setKey("web1", "k")
			n.mine("web1", c.now)
			first := true
			err := n.change("web1", edited(func(now []byte) []byte {
				if !first {
					return now
				}
				first = false
				n.mine("web1", c.master)
				return c.then
			}))
			check.ErrorIs(t, err, c.err)
			raw, err := os.ReadFile(filepath.Join(n.master.CacheDir, "mine/web1.p"))
			if err != nil || !bytes.Equal(raw, c.want) {
				t.Errorf("there are %d bytes, %v", len(raw), err)
			}
			if e, _ := n.store.entry("web1"); c.err == nil && e.Hash != (fileSet{"mine/web1.p": c.want}).hash() {
				t.Error("it is not known")
			}
		})
	}
}

// A mine that is a link is the master's to change, and a record replaces it, as a master does.
func TestMineThatIsALink(t *testing.T) {
	w, n := mineNode(t, 3008, false)
	w.setKey("web1", "k")
	n.mine("other", texts("f", "1"))
	require.NoError(t, os.Symlink("other.p", filepath.Join(n.master.CacheDir, "mine/web1.p")))
	check.ErrorIs(t, n.change("web1", always(texts("f", "2"))), ErrNotHere, "a link")
	n.store.lookAt([]string{"web1"})
	what, err := n.store.accept(must(n.store.disk.root()),
		record{id: "web1", stamp: w.now(), key: fingerprint("k"), data: data{main: texts("f", "3")}})
	if got, _ := n.has("web1"); what != written || err != nil || !bytes.Equal(got, texts("f", "3")) {
		t.Errorf("%s, %v: %q", what, err, got)
	}
	if got, _ := n.has("other"); !bytes.Equal(got, texts("f", "1")) {
		t.Errorf("what it led to is %q", got)
	}
	n.mustChange("web1", always(texts("f", "4")))
}

// Data come to a node while their key goes, and whoever removes what belongs to it has looked already.
func TestKeyGoesWhileDataCome(t *testing.T) {
	for name, come := range map[string]func(n *testNode) error{
		"a change": func(n *testNode) error { return n.change("web1", always(texts("f", "1"))) },
		"a record": func(n *testNode) error {
			r := record{id: "web1", stamp: 1, key: fingerprint("k"), data: data{main: texts("f", "1")}}
			_, err := n.store.accept(must(n.store.disk.root()), r)
			return err
		},
		"the master's": func(n *testNode) error {
			n.mine("web1", texts("f", "1"))
			n.store.lookAt([]string{"web1"})
			return nil
		},
	} {
		for _, again := range []bool{false, true} {
			w, n := mineNode(t, 3008, false)
			set := func(does func()) { // and nobody but the test says so
				w.mu.Lock()
				defer w.mu.Unlock()
				does()
			}
			gone := false
			set(func() {
				w.keys["web1"] = "k"
				w.tick = func() {
					set(func() {
						gone = true
						w.lives["web1"]++
						if !again {
							delete(w.keys, "web1")
						}
					})
					n.store.purgeUnknown()
				}
			})
			if err := come(n); err != nil || !gone {
				t.Errorf("%s: key gone %v, %v", name, gone, err)
			}
			if got, _ := n.has("web1"); got != nil {
				t.Errorf("%s, accepted again %v: there is %q", name, again, got)
			}
			if e, had := n.store.entry("web1"); had {
				t.Errorf("%s, accepted again %v: %+v is known", name, again, e)
			}
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
