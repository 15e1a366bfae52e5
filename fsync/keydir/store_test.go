package keydir

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// withStore gives a node a master that keeps its keys in a store.
func withStore(n *testNode) *testNode {
	n.store = &mmapkeys.Geometry{Slots: 101, SlotSize: 64, KeySize: 30}
	return n
}

func (n *testNode) bank(name string) *mmapkeys.Bank {
	n.t.Helper()
	b, err := mmapkeys.NewBank(n.pki, name, *n.store)
	require.NoError(n.t, err)
	return b
}

// saltKey does to the store what salt-key does; state 0 deletes.
func (n *testNode) saltKey(state byte, id, text string) {
	n.t.Helper()
	c := mmapkeys.Change{Key: id}
	if state != 0 {
		c.Value = mmapkeys.EncodeKey(state, text)
	}
	require.NoError(n.t, n.bank(mmapkeys.Keys).Apply(n.t.Context(), []mmapkeys.Change{c})[0])
}

func (n *testNode) saltDenied(id, text string) {
	n.t.Helper()
	c := mmapkeys.Change{Key: id, Value: []byte(text)}
	require.NoError(n.t, n.bank(mmapkeys.DeniedKeys).Apply(n.t.Context(), []mmapkeys.Change{c})[0])
}

// stored lists what the store has as files() does.
func (n *testNode) stored() map[string]string {
	out := map[string]string{}
	for _, name := range []string{mmapkeys.Keys, mmapkeys.DeniedKeys} {
		c, err := n.bank(name).Read(n.t.Context(), nil, false)
		require.NoError(n.t, err)
		for id, e := range c.Entries {
			dir, text := deniedDir, string(e.Value)
			if name == mmapkeys.Keys {
				st, pub, _ := mmapkeys.DecodeKey(e.Value)
				dir, text = placeOf(stateOf(st)), pub
			}
			out[dir.String()+"/"+id] = text
		}
	}
	return out
}

// awaitStore waits until the files of all nodes and the stores of those that have one are the same.
func awaitStore(t *testing.T, want files, nodes ...*testNode) {
	t.Helper()
	await(t, want, nodes...)
	for _, n := range nodes {
		if n.store == nil {
			continue
		}
		patience.WaitNil(t, func() error {
			if got := n.stored(); !maps.Equal(got, want) {
				return fmt.Errorf("want%.2000s\nthe store of %s has%.2000s", short(want), n.id, short(got))
			}
			return nil
		})
	}
}

func storePair(t *testing.T) (*shared, *testNode, *testNode) {
	log := newShared(t)
	return log, withStore(newTestNode(t, "m1", log)).start(), newTestNode(t, "m2", log).start()
}

func TestStoreEditsTravel(t *testing.T) {
	k := keyTexts()
	log, m1, m2 := storePair(t)
	m1.saltKey(mmapkeys.Pending, "web", k[0])
	awaitStore(t, files{"minions_pre/web": k[0]}, m1, m2)
	m2.move(pendingDir, acceptedDir, "web")
	awaitStore(t, files{"minions/web": k[0]}, m1, m2)
	m1.saltDenied("web", k[1])
	awaitStore(t, files{"minions/web": k[0], "minions_denied/web": k[1]}, m1, m2)
	m1.saltKey(mmapkeys.Rejected, "web", k[0])
	awaitStore(t, files{"minions_rejected/web": k[0], "minions_denied/web": k[1]}, m1, m2)
	m2.remove(deniedDir, "web")
	awaitStore(t, files{"minions_rejected/web": k[0]}, m1, m2)
	m1.saltKey(0, "web", "")
	awaitStore(t, files{}, m1, m2)
	if _, ok := log.View().Tombstone("web"); !ok {
		t.Error("no tombstone")
	}
	m2.put(pendingDir, "web", k[2]) // the next one registers at once
	awaitStore(t, files{"minions_pre/web": k[2]}, m1, m2)
	m1.remove(pendingDir, "web") // a file, by hand
	awaitStore(t, files{}, m1, m2)
	proposed, _ := log.counts()
	time.Sleep(400 * time.Millisecond) // nothing may echo
	if n, _ := log.counts(); n != proposed || n != 8 {
		t.Errorf("%d commands, then %d, for eight edits", proposed, n)
	}
}

func TestStore_BothSidesChangedWhileDown(t *testing.T) {
	k := keyTexts()
	_, m1, m2 := storePair(t)
	want := files{}
	for _, id := range []string{"a", "b", "c", "d"} {
		m2.put(acceptedDir, id, k[0])
		want["minions/"+id] = k[0]
	}
	awaitStore(t, want, m1, m2)
	m1.stop()
	m2.remove(acceptedDir, "a")              // deleted elsewhere
	m1.saltKey(0, "b", "")                   // deleted here while down
	m1.saltKey(mmapkeys.Pending, "e", k[1])  // registered here while down
	m2.move(acceptedDir, rejectedDir, "c")   // rejected there …
	m1.saltKey(0, "c", "")                   // … and deleted here: consensus wins
	m1.saltKey(mmapkeys.Rejected, "d", k[0]) // rejected here while down
	await(t, files{"minions/b": k[0], "minions_rejected/c": k[0], "minions/d": k[0]}, m2)
	m1.start()
	awaitStore(t, files{"minions_pre/e": k[1], "minions_rejected/c": k[0], "minions_rejected/d": k[0]}, m1, m2)
}

// TestStoreWithoutQuorum has an operator change his mind while nothing can be decided, over a restart.
func TestStoreWithoutQuorum(t *testing.T) {
	k := keyTexts()
	log, m1, m2 := storePair(t)
	m1.saltKey(mmapkeys.Pending, "a", k[0])
	m1.saltKey(mmapkeys.Accepted, "b", k[0])
	awaitStore(t, files{"minions_pre/a": k[0], "minions/b": k[0]}, m1, m2)
	log.quorum(false)
	m1.saltKey(mmapkeys.Accepted, "a", k[0])
	m1.saltKey(mmapkeys.Rejected, "b", k[0])
	patience.WaitFor(t, "the first edits are in the files", func() bool {
		f := m1.files()
		return f["minions/a"] != "" && f["minions_rejected/b"] != ""
	})
	m1.stop()
	m1.saltKey(mmapkeys.Rejected, "a", k[0])
	m1.saltKey(0, "b", "")
	m1.open()
	patience.WaitFor(t, "the second edits are in the files", func() bool {
		f := m1.files()
		return f["minions_rejected/a"] != "" && len(f) == 1
	})
	log.quorum(true)
	awaitStore(t, files{"minions_rejected/a": k[0]}, m1, m2)
}

// TestStrangeStores: what is in a store that nobody knows does not bring keys back.
func TestStrangeStores(t *testing.T) {
	k := keyTexts()
	for name, lose := range map[string]func(t *testing.T, n *testNode, old string){
		"restored from a backup": func(t *testing.T, n *testNode, old string) {
			for _, path := range glob(n.pki, ".mmap_*") {
				require.NoError(t, os.Remove(path))
			}
			require.NoError(t, os.CopyFS(n.pki, os.DirFS(old)))
		},
		"wiped": func(t *testing.T, n *testNode, _ string) {
			for _, path := range glob(n.pki, ".mmap_*") {
				require.NoError(t, os.Remove(path))
			}
		},
		"zeroed": func(t *testing.T, n *testNode, _ string) {
			for _, path := range glob(n.pki, ".mmap_*.idx") {
				require.NoError(t, os.WriteFile(path, make([]byte, 101*64), 0o600))
			}
		},
		"pages lost": func(t *testing.T, n *testNode, _ string) { losePages(t, n) },
		"pages and roster lost": func(t *testing.T, n *testNode, _ string) {
			losePages(t, n)
			require.NoError(t, os.Truncate(filepath.Join(n.pki, mmapkeys.Keys+".roster"), 0))
		},
		"heap lost": func(t *testing.T, n *testNode, _ string) {
			require.NoError(t, os.Truncate(filepath.Join(n.pki, mmapkeys.Keys+".heap"), 0))
		},
		"not used for a while": func(t *testing.T, n *testNode, _ string) {
			was := n.store
			n.store = nil
			n.start()
			n.log.ApplyAs(t, "gone2", "", "")
			await(t, files{"minions/a": k[0], "minions_rejected/b": k[0]}, n)
			n.stop()
			n.store = was
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, m1, m2 := storePair(t)
			for _, id := range []string{"a", "b", "gone", "gone2"} {
				m2.put(acceptedDir, id, k[0])
			}
			awaitStore(t, files{"minions/a": k[0], "minions/b": k[0], "minions/gone": k[0], "minions/gone2": k[0]}, m1, m2)
			old := t.TempDir()
			for _, path := range glob(m1.pki, ".mmap_*") {
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(old, filepath.Base(path)), text, 0o600))
			}
			m2.remove(acceptedDir, "gone")
			m2.move(acceptedDir, rejectedDir, "b")
			want := files{"minions/a": k[0], "minions_rejected/b": k[0], "minions/gone2": k[0]}
			awaitStore(t, want, m1, m2)
			m1.stop()
			lose(t, m1, old)
			if _, ok := log.View().Key("gone2"); !ok {
				delete(want, "minions/gone2")
			}
			m1.start()
			awaitStore(t, want, m1, m2)
		})
	}
}

// losePages zeroes the slots of the keys' bank, as if the pages behind the header had never been written.
func losePages(t *testing.T, n *testNode) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(n.pki, mmapkeys.Keys), os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, (n.store.Slots-1)*n.store.SlotSize), int64(n.store.SlotSize))
	require.NoError(t, errors.Join(err, f.Close()))
}

// TestStore_LostAfterFirstWrites: what was written to a store is known before anything else is found out about it.
func TestStore_LostAfterFirstWrites(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	m2 := newTestNode(t, "m2", log).start()
	m2.put(acceptedDir, "a", k[0])
	await(t, files{"minions/a": k[0]}, m2)
	m1 := withStore(newTestNode(t, "m1", log))
	m1.once = true
	m1.open()
	awaitStore(t, files{"minions/a": k[0]}, m1)
	m1.stop()
	if err := os.WriteFile(filepath.Join(m1.pki, mmapkeys.Keys), make([]byte, m1.store.Slots*m1.store.SlotSize),
		0o600); err != nil {
		t.Fatal(err)
	}
	m1.once = false
	m1.start()
	awaitStore(t, files{"minions/a": k[0]}, m1, m2)
}

// TestStore_DistrustBeforeRepair: when that they are lost cannot be kept, nothing is put right.
func TestStore_DistrustBeforeRepair(t *testing.T) {
	k := keyTexts()
	m1 := withStore(newTestNode(t, "m1", newShared(t)))
	m1.saltKey(mmapkeys.Accepted, "a", k[0])
	st, err := newStore(m1.pki, m1.store)
	require.NoError(t, err)
	if _, err := st.readChanges(t.Context()); err != nil || !st.hasKeys() {
		t.Fatal("no key found", err)
	}
	losePages(t, m1)
	full := errors.New("disk full")
	for range 2 {
		st.onLostPages = func(bank int) error {
			if bank != 0 {
				t.Errorf("bank %d", bank)
			}
			return full
		}
		if _, err := st.readChanges(t.Context()); !errors.Is(err, full) {
			t.Fatal(err)
		}
	}
	told := 0
	st.onLostPages = func(int) error { told++; return nil }
	if _, err := st.readChanges(t.Context()); err != nil || told != 1 || st.hasKeys() {
		t.Error(told, st.hasKeys(), err)
	}
}

func glob(dir, pattern string) []string {
	out, _ := filepath.Glob(filepath.Join(dir, pattern))
	return out
}

// ApplyAs decides about a key as another node would; without a state it is deleted.
func (s *shared) ApplyAs(t *testing.T, id string, st state.KeyState, pub string) {
	t.Helper()
	v := s.View()
	r, err := s.Propose(t.Context(), []state.Command{state.KeySet{ID: id, State: st, Pub: pub, BaseRev: v.KeyRev(id),
		SeenRev: v.Rev()}})
	if err != nil || r[0].Code != state.OK {
		t.Fatal(r, err)
	}
}

func TestJoinerWithAStore(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	m2 := newTestNode(t, "m2", log).start()
	m2.put(acceptedDir, "both", k[0])
	m2.put(acceptedDir, "deleted", k[0])
	await(t, files{"minions/both": k[0], "minions/deleted": k[0]}, m2)
	m2.remove(acceptedDir, "deleted")
	await(t, files{"minions/both": k[0]}, m2)
	m1 := withStore(newTestNode(t, "m1", log))
	m1.saltKey(mmapkeys.Accepted, "mine", k[1])
	m1.saltKey(mmapkeys.Rejected, "bad", k[1])
	m1.saltKey(mmapkeys.Accepted, "both", k[2])
	m1.saltKey(mmapkeys.Accepted, "deleted", k[0])
	m1.start()
	awaitStore(t, files{"minions/both": k[0], "minions_pre/mine": k[1], "minions_rejected/bad": k[1]}, m1, m2)
}

func TestFounderWithAStore(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	m1 := withStore(newTestNode(t, "m1", log))
	m1.found = true
	m1.saltKey(mmapkeys.Accepted, "a", k[0])
	m1.saltKey(mmapkeys.Pending, "p", k[0])
	m1.saltKey(mmapkeys.Accepted, "both", k[1])
	m1.saltDenied("a", k[3])
	m1.put(acceptedDir, "both", k[2]) // left from the time before the store
	m1.put(acceptedDir, "left", k[2])
	m1.put(rejectedDir, "r", k[2])
	m1.start()
	awaitStore(t, files{
		"minions/a": k[0], "minions_pre/p": k[0], "minions/both": k[1], "minions_pre/left": k[2], "minions_rejected/r": k[2],
		"minions_denied/a": k[3],
	}, m1)
	patience.WaitFor(t, "everything is gone through", m1.dir.Settled)
}

func TestFounderWithAnEmptyStore(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	m1 := withStore(newTestNode(t, "m1", log))
	m1.found = true
	m1.put(acceptedDir, "a", k[0])
	m1.put(deniedDir, "a", k[1])
	m1.start()
	awaitStore(t, files{"minions/a": k[0], "minions_denied/a": k[1]}, m1)
}

func TestStoreThatIsTooSmall(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	m1, m2 := withStore(newTestNode(t, "m1", log)), newTestNode(t, "m2", log).start()
	m1.store.Slots = 6 // room for five
	m1.start()
	want := files{}
	for i := range 9 {
		id := fmt.Sprintf("m%d", i)
		m2.put(acceptedDir, id, k[0])
		want["minions/"+id] = k[0]
	}
	long := "a-minion-id-that-is-longer-than-the-field"
	m2.put(acceptedDir, long, k[0])
	m2.put(pendingDir, long[:30], k[0])
	want["minions/"+long], want["minions_pre/"+long[:30]] = k[0], k[0]
	await(t, want, m1, m2)
	for end := time.Now().Add(30 * time.Second); len(m1.stored()) != 5; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) { // files come first
			t.Fatalf("the store has%s", short(m1.stored()))
		}
	}
	m1.stop()
	m1.start() // what is not in the store has not been deleted
	for id := range m1.stored() {
		m1.saltKey(0, filepath.Base(id), "")
		delete(want, id)
		break
	}
	await(t, want, m1, m2)
}

// TestSaltsMigration runs what `salt-run pki.migrate_to_mmap` does: every file goes into the store once more.
func TestSaltsMigration(t *testing.T) {
	k := keyTexts()
	log, m1, m2 := storePair(t)
	m2.put(acceptedDir, "a", k[0])
	m2.put(pendingDir, "b", k[1])
	want := files{"minions/a": k[0], "minions_pre/b": k[1]}
	awaitStore(t, want, m1, m2)
	before, _ := log.counts()
	m1.saltKey(mmapkeys.Accepted, "a", k[0])
	m1.saltKey(mmapkeys.Pending, "b", k[1])
	time.Sleep(300 * time.Millisecond)
	awaitStore(t, want, m1, m2)
	if n, _ := log.counts(); n != before {
		t.Errorf("%d commands", n-before)
	}
}

func TestGarbageInTheStore(t *testing.T) {
	k := keyTexts()
	_, m1, m2 := storePair(t)
	m2.put(acceptedDir, "a", k[0])
	awaitStore(t, files{"minions/a": k[0]}, m1, m2)
	m1.saltKey(mmapkeys.Accepted, "a", "no key")
	m1.saltKey(mmapkeys.Pending, "junk", "no key either")
	patience.WaitFor(t, "the key is put right, the rest stays as it is", func() bool {
		got := m1.stored()
		return got["minions/a"] == k[0] && got["minions_pre/junk"] != ""
	})
	await(t, files{"minions/a": k[0]}, m1, m2)
}

// TestStoreStorm has operators edit files and stores on all nodes at once, with restarts: in the end all are the same
// and nothing moves.
func TestStoreStorm(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	nodes := []*testNode{
		withStore(newTestNode(t, "m1", log)).start(), newTestNode(t, "m2", log).start(),
		withStore(newTestNode(t, "m3", log)).start(),
	}
	rng := rand.New(rand.NewPCG(3, 8))
	for step := range 150 {
		n, id, text := nodes[rng.IntN(3)], fmt.Sprintf("id%d", rng.IntN(12)), k[rng.IntN(3)]
		switch p := keyPlaces[rng.IntN(3)]; {
		case n.store != nil && rng.IntN(4) == 0:
			n.saltKey(0, id, "")
		case n.store != nil:
			n.saltKey(byte(1+rng.IntN(3)), id, text)
		case rng.IntN(3) == 0:
			for _, p := range keyPlaces {
				_ = os.Remove(n.path(p, id))
			}
		default:
			for _, other := range keyPlaces {
				_ = os.Remove(n.path(other, id))
			}
			n.put(p, id, text)
		}
		if step%40 == 39 {
			n.stop()
			n.open()
		}
		if rng.IntN(3) == 0 {
			time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond) // lets some of it come through
		}
	}
	patience.WaitFor(t, "all are the same, and stay so", func() bool {
		want := consensusFiles(log.View())
		rev := log.View().Rev()
		for _, n := range nodes {
			if !maps.Equal(n.files(), want) || n.store != nil && !maps.Equal(n.stored(), want) {
				return false
			}
		}
		time.Sleep(250 * time.Millisecond)
		return log.View().Rev() == rev
	})
	if n, _ := log.counts(); n > 600 {
		t.Errorf("%d commands for 150 edits", n)
	}
}

func TestManyKeysForAStore(t *testing.T) {
	const many = 3000
	k := keyTexts()
	log := newShared(t)
	m2 := newTestNode(t, "m2", log).start()
	want := files{}
	for i := range many {
		id := fmt.Sprintf("minion-%d", i)
		m2.put(acceptedDir, id, k[0])
		want["minions/"+id] = k[0]
	}
	await(t, want, m2)
	m1 := withStore(newTestNode(t, "m1", log))
	m1.store.Slots = 3 * many
	began := time.Now()
	m1.start()
	t.Logf("%d keys in files and store after %v", many, time.Since(began))
	awaitStore(t, want, m1, m2)
}
