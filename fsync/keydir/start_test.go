package keydir

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

func TestWithoutInotify(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	m1, m2 := newTestNode(t, "m1", log), newTestNode(t, "m2", log)
	m1.blind = true
	m1.start()
	m2.start()
	m1.put(acceptedDir, "web", k[0])
	await(t, files{"minions/web": k[0]}, m1, m2)
	if !logged(m1, "polled") {
		t.Error("no warning that directories are polled")
	}
}

func TestReplacedDirectoryIsWatchedAgain(t *testing.T) {
	k := keyTexts()
	_, m1, m2 := pair(t)
	require.NoError(t, os.Rename(filepath.Join(m1.pki, "minions_pre"), filepath.Join(m1.pki, "minions_pre.old")))
	require.NoError(t, os.Mkdir(filepath.Join(m1.pki, "minions_pre"), 0o700))
	m1.put(acceptedDir, "web", k[0]) // makes it look
	await(t, files{"minions/web": k[0]}, m1, m2)
	m1.put(pendingDir, "db", k[1])
	await(t, files{"minions/web": k[0], "minions_pre/db": k[1]}, m1, m2)
}

func TestStart_WaitForCurrentView(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	m1 := newTestNode(t, "m1", log)
	var current atomic.Bool
	m1.cur = current.Load
	m1.put(acceptedDir, "web", k[0])
	m1.open()
	time.Sleep(300 * time.Millisecond) // much longer than an edit takes
	if n, _ := log.counts(); n != 0 {
		t.Fatal("proposed before the view was current")
	}
	// What the log had to say first: the cluster knows another key for it.
	if _, err := log.Propose(t.Context(), []state.Command{state.KeySet{ID: "web", State: state.KeyAccepted,
		Pub: k[1]}}); err != nil {
		t.Fatal(err)
	}
	current.Store(true)
	await(t, files{"minions/web": k[1]}, m1)
}

// TestAnotherCluster: the base of a former cluster says nothing about this one.
func TestAnotherCluster(t *testing.T) {
	k := keyTexts()
	m1 := newTestNode(t, "m1", newShared(t)).start()
	m1.put(acceptedDir, "web", k[0])
	await(t, files{"minions/web": k[0]}, m1)
	m1.stop()
	b, err := loadBase(m1.state)
	require.NoError(t, err)
	b.UUID = "another"
	require.NoError(t, saveBase(m1.state, b))
	m1.log = newShared(t)
	m1.start()
	await(t, files{"minions_pre/web": k[0]}, m1)
}

// TestConsensusWentBack: a cluster restored from an older snapshot decides about everything.
func TestConsensusWentBack(t *testing.T) {
	k := keyTexts()
	m1 := newTestNode(t, "m1", newShared(t)).start()
	m1.put(acceptedDir, "web", k[0])
	m1.put(acceptedDir, "db", k[1])
	await(t, files{"minions/web": k[0], "minions/db": k[1]}, m1)
	m1.synced() // or it proposes them once more: it has not heard that they were decided
	m1.stop()
	m1.log = newShared(t)
	if _, err := m1.log.Propose(t.Context(), []state.Command{state.KeySet{ID: "web", State: state.KeyAccepted,
		Pub: k[0]}}); err != nil {
		t.Fatal(err)
	}
	m1.cur = func() bool { return true }
	m1.start()
	await(t, files{"minions/web": k[0], "minions_pre/db": k[1]}, m1)
	if !logged(m1, "older than this node's keys") {
		t.Error("nothing was said about it")
	}
}

func TestFounderThatDiedHalfWay(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	m1 := newTestNode(t, "m1", log)
	m1.found = true
	m1.put(acceptedDir, "web", k[0])
	m1.put(acceptedDir, "db", k[1])
	log.quorum(false)
	m1.start()
	patience.WaitFor(t, "a proposal has failed", func() bool { return logged(m1, "wait for consensus") })
	m1.stop()
	log.quorum(true) // one of them had arrived after all
	if _, err := log.Propose(t.Context(), []state.Command{state.KeySet{ID: "web", State: state.KeyAccepted,
		Pub: k[0]}}); err != nil {
		t.Fatal(err)
	}
	m1.start()
	await(t, files{"minions/web": k[0], "minions/db": k[1]}, m1)
}

func TestNew(t *testing.T) {
	log := newShared(t)
	for _, c := range []Config{{}, {PKIDir: "a", StateDir: "b"}, {PKIDir: "a", Log: log}, {StateDir: "a", Log: log}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	d, err := New(Config{PKIDir: "a", StateDir: t.TempDir(), Log: log})
	require.NoError(t, err)
	check.NoError(t, d.Close(), "close before open")
}
