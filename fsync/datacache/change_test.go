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

	"saltclusterd/fsync/msgpack"
)

// edited is an Edit that makes a mine of what was there and something more.
func edited(f func(now []byte) []byte) Edit {
	return func(now []byte) ([]byte, bool, error) { return f(now), true, nil }
}

// always is an Edit that makes a mine what it says.
func always(then []byte) Edit { return edited(func([]byte) []byte { return then }) }

// change has a node change a mine.
func (n *testNode) change(id string, edit Edit) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := n.store.Change(ctx, id, edit)
	if ctx.Err() != nil {
		n.w.t.Fatalf("%s waited in vain", n.id)
	}
	return err
}

func (n *testNode) mustChange(id string, edit Edit) {
	n.w.t.Helper()
	if err := n.change(id, edit); err != nil {
		n.w.t.Fatalf("%s: %v", n.id, err)
	}
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

func TestChangeIsOnEveryMasterWhenItIsDone(t *testing.T) {
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
			if !bytes.Equal(now, texts("by", string(n.id))) {
				t.Errorf("%s changes %q", n.id, now)
			}
			return texts("by", "again")
		}))
		on("again by "+string(n.id), texts("by", "again"))
		n.mustChange("web1", always(nil))
		on("removed by "+string(n.id), nil)
		n.mustChange("web1", always(nil))
	}
	for _, n := range w.nodes {
		if left, err := filepath.Glob(filepath.Join(n.master.CacheDir, "*", "*", tempPrefix+"*")); err != nil || len(left) > 0 {
			t.Errorf("%s: %q, %v", n.id, left, err)
		}
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
		stamp := n.stamp("web1")
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		n.mustChange("web1", always(texts("f", "1"))) // the same once more
		if info, err = os.Stat(path); err != nil || time.Since(info.ModTime()) > time.Minute {
			t.Errorf("%d: not renewed: %v, %v", major, info, err)
		}
		n.store.scan()
		if got := n.stamp("web1"); got != stamp {
			t.Errorf("%d: what stayed the same is news: %d after %d", major, got, stamp)
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
	for name, id := range map[string]string{"no key": "nobody", "no map": "web2", "a bank that is a file": "web3", "no name of a file": "a/b"} {
		if err := n.change(id, always(texts("f", "1"))); !errors.Is(err, ErrNotHere) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, then := range map[string][]byte{"large": sized(maxEdit + 1), "many": counted(maxEntries + 1)} {
		if err := n.change("web1", always(then)); !errors.Is(err, ErrNotHere) {
			t.Errorf("too %s: %v", name, err)
		}
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
	if err := data.Change(t.Context(), "web1", always(nil)); !errors.Is(err, ErrNotHere) {
		t.Errorf("grains: %v", err)
	}
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

// Nobody's entry is lost: neither those of changes that meet nor what the master, which locks nothing, writes between an edit's
// reading and our writing.
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
		if !bytes.Equal(now, texts("by", "the master")) {
			t.Errorf("the second attempt sees %q", now)
		}
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

// Minions do not wait for each other's mines, nor a small one for a large one, and large ones take turns.
func TestChangesDoNotWaitForOthers(t *testing.T) {
	dir, w := t.TempDir(), newWorld(t)
	w.kind = Mine
	t.Cleanup(w.close) // before the directory goes
	n := w.add("a", 3008, dir)
	ids := []string{"web0"}
	for i := 1; len(ids) < 3; i++ { // with locks of their own
		id := fmt.Sprintf("web%d", i)
		if !slices.ContainsFunc(ids, func(other string) bool { return n.store.turns.of(id) == n.store.turns.of(other) }) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		w.setKey(id, "k")
	}
	n.mine(ids[0], sized(largeEdit+1))
	n.mine(ids[1], sized(largeEdit+1))
	begun, end := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		n.mustChange(ids[0], edited(func(now []byte) []byte {
			close(begun)
			<-end
			return now
		}))
	})
	<-begun
	n.mustChange(ids[2], always(texts("f", "1")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.store.Change(ctx, ids[1], always(nil)); !errors.Is(err, ErrNotHere) {
		t.Errorf("a second large one, for which nobody waits: %v", err)
	}
	close(end)
	wg.Wait()
	n.mustChange(ids[1], always(texts("f", "2")))
	for i, want := range [][]byte{sized(largeEdit + 1), texts("f", "2"), texts("f", "1")} {
		if got, _ := n.has(ids[i]); !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes", ids[i], len(got))
		}
	}
}
