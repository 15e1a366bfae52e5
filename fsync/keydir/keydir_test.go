package keydir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

type files = map[string]string

func pair(t *testing.T) (*shared, *testNode, *testNode) {
	log := newShared(t)
	return log, newTestNode(t, "m1", log).start(), newTestNode(t, "m2", log).start()
}

func TestEditsTravel(t *testing.T) {
	k := keyTexts()
	_, m1, m2 := pair(t)
	m1.put(pendingDir, "web", k[0])
	await(t, files{"minions_pre/web": k[0]}, m1, m2)
	m2.move(pendingDir, acceptedDir, "web")
	await(t, files{"minions/web": k[0]}, m1, m2)
	m1.put(deniedDir, "web", k[1])
	await(t, files{"minions/web": k[0], "minions_denied/web": k[1]}, m1, m2)
	m1.move(acceptedDir, rejectedDir, "web")
	await(t, files{"minions_rejected/web": k[0], "minions_denied/web": k[1]}, m1, m2)
	m2.remove(deniedDir, "web")
	await(t, files{"minions_rejected/web": k[0]}, m1, m2)
	m2.remove(rejectedDir, "web")
	await(t, files{}, m1, m2)
	m2.put(pendingDir, "web", k[2]) // the next one registers at once
	await(t, files{"minions_pre/web": k[2]}, m1, m2)
}

func TestEditIsFast(t *testing.T) {
	k := keyTexts()
	log, m1, m2 := pair(t)
	began := time.Now()
	m1.put(acceptedDir, "web", k[0])
	await(t, files{"minions/web": k[0]}, m1, m2)
	m1.remove(acceptedDir, "web")
	await(t, files{}, m1, m2)
	t.Logf("accept and delete on the other node after %v", time.Since(began))
	time.Sleep(300 * time.Millisecond) // nothing may echo
	if n, _ := log.counts(); n != 2 {
		t.Errorf("%d commands for two edits", n)
	}
}

func TestBothSidesChangedWhileDown(t *testing.T) {
	k := keyTexts()
	_, m1, m2 := pair(t)
	for _, id := range []string{"a", "b", "c", "d"} {
		m1.put(acceptedDir, id, k[0])
	}
	await(t, files{"minions/a": k[0], "minions/b": k[0], "minions/c": k[0], "minions/d": k[0]}, m1, m2)
	m2.stop()
	m1.remove(acceptedDir, "a")            // deleted elsewhere
	m2.remove(acceptedDir, "b")            // deleted here while down
	m2.put(pendingDir, "e", k[1])          // registered here while down
	m1.move(acceptedDir, rejectedDir, "c") // rejected there …
	m2.remove(acceptedDir, "c")            // … and deleted here: consensus wins
	m2.move(acceptedDir, rejectedDir, "d") // rejected here while down
	await(t, files{"minions/b": k[0], "minions_rejected/c": k[0], "minions/d": k[0]}, m1)
	m2.start()
	await(t, files{"minions_pre/e": k[1], "minions_rejected/c": k[0], "minions_rejected/d": k[0]}, m1, m2)
}

func TestDifferentKeysForOneID(t *testing.T) {
	k := keyTexts()
	log, m1, m2 := pair(t)
	log.quorum(false)
	m1.put(pendingDir, "web", k[0])
	m2.put(pendingDir, "web", k[1])
	patience.WaitFor(t, "both nodes have tried", func() bool {
		return logged(m1, "wait for consensus") && logged(m2, "wait for consensus")
	})
	log.quorum(true)
	patience.WaitFor(t, "one key wins, the other is denied", func() bool {
		a, b := m1.files(), m2.files()
		won := a["minions_pre/web"]
		return won != "" && won == b["minions_pre/web"] && a["minions_denied/web"] != "" &&
			a["minions_denied/web"] != won && a["minions_denied/web"] == b["minions_denied/web"]
	})
}

func TestHalfWrittenFileWaits(t *testing.T) {
	k := keyTexts()
	log, m1, m2 := pair(t)
	f, err := os.Create(m1.path(pendingDir, "web"))
	require.NoError(t, err)
	for _, part := range []string{"", k[0][:100], k[0][100:200]} {
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
		time.Sleep(150 * time.Millisecond) // longer than a whole edit takes
		if n, _ := log.counts(); n != 0 {
			t.Fatal("half a key was proposed")
		}
	}
	if _, err := f.WriteString(k[0][200:]); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, f.Close())
	await(t, files{"minions_pre/web": k[0]}, m1, m2)
}

func TestGarbageIsHealedOrLeft(t *testing.T) {
	k := keyTexts()
	_, m1, m2 := pair(t)
	m1.put(acceptedDir, "web", k[0])
	await(t, files{"minions/web": k[0]}, m1, m2)
	require.NoError(t, os.Truncate(m2.path(acceptedDir, "web"), 0))
	m2.put(pendingDir, "junk", "no key at all")
	patience.WaitFor(t, "the known key is healed", func() bool { return m2.files()["minions/web"] == k[0] })
	check.Equal(t, m2.files()["minions_pre/junk"], "no key at all", "garbage of an unknown id became")
}

func TestInvalidEntriesStay(t *testing.T) {
	k := keyTexts()
	_, m1, m2 := pair(t)
	must := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	must(os.Mkdir(m1.path(pendingDir, "adirectory"), 0o700))
	must(os.Symlink("/etc/hostname", m1.path(pendingDir, "alink")))
	must(exec.Command("mkfifo", m1.path(pendingDir, "apipe")).Run())
	must(os.WriteFile(m1.path(acceptedDir, ".key_cache"), []byte{0x90}, 0o600))
	must(os.WriteFile(m1.path(acceptedDir, "back\\slash"), []byte(k[0]), 0o600))
	must(os.Mkdir(filepath.Join(m1.pki, "minions_autosign"), 0o700))
	must(os.WriteFile(filepath.Join(m1.pki, "minions_autosign", "web"), nil, 0o600))
	m1.put(acceptedDir, "web", k[0])
	await(t, files{"minions/web": k[0]}, m2)
	time.Sleep(500 * time.Millisecond) // longer than InvalidWait
	if got := consensusFiles(m1.log.View()); len(got) != 1 {
		t.Errorf("consensus has%s", short(got))
	}
	for _, name := range []string{"minions_pre/adirectory", "minions_pre/alink", "minions_pre/apipe",
		"minions/back\\slash", "minions_autosign/web"} {
		if _, err := os.Lstat(filepath.Join(m1.pki, name)); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
	m2.put(acceptedDir, "db", k[1])
	patience.WaitFor(t, "a stale key cache is dropped when a key is written", func() bool {
		_, err := os.Lstat(m1.path(acceptedDir, ".key_cache"))
		return os.IsNotExist(err)
	})
}

func TestLostDirectoriesAreNoDeletions(t *testing.T) {
	k := keyTexts()
	want := files{"minions/a": k[0], "minions_pre/b": k[1]}
	_, m1, m2 := pair(t)
	m1.put(acceptedDir, "a", k[0])
	m1.put(pendingDir, "b", k[1])
	await(t, want, m1, m2)

	away := m2.pki + ".away"
	require.NoError(t, os.Rename(m2.pki, away))
	m1.put(pendingDir, "c", k[2]) // makes m2 look
	patience.WaitFor(t, "the loss is noticed", func() bool { return logged(m2, "not mirrored") })
	m1.remove(pendingDir, "c")
	await(t, want, m1)
	require.NoError(t, os.Rename(away, m2.pki))
	await(t, want, m1, m2)

	// And while it is down: a fresh, empty pki_dir.
	m2.stop()
	require.NoError(t, os.RemoveAll(m2.pki))
	require.NoError(t, os.MkdirAll(filepath.Join(m2.pki, "minions"), 0o700))
	m2.start()
	await(t, want, m1, m2)
}

func TestRestoredBackupBringsNothingBack(t *testing.T) {
	k := keyTexts()
	_, m1, m2 := pair(t)
	m1.put(acceptedDir, "old", k[0])
	m1.put(acceptedDir, "stays", k[1])
	await(t, files{"minions/old": k[0], "minions/stays": k[1]}, m1, m2)
	m2.stop()
	backup := m2.pki + ".backup"
	run(t, "cp", "-r", m2.pki, backup) // new times, as a careless backup has them
	m2.start()
	m1.remove(acceptedDir, "old")
	await(t, files{"minions/stays": k[1]}, m1, m2)
	patience.WaitFor(t, "the marker has moved on", func() bool { return differ(m2.pki, backup, ".saltclusterd-keys.m2") })
	m2.stop()
	run(t, "cp", "-r", backup+"/.", m2.pki)
	m2.start()
	await(t, files{"minions/stays": k[1]}, m1, m2)
}

// Single files of a backup come back with their times, and the marker stays. A key that was replaced since is as
// revoked as one that was deleted.
func TestRestoredFilesOfFormerKeys(t *testing.T) {
	k := keyTexts()
	_, m1, m2 := pair(t)
	restore := func(id, text string) {
		file, temp := filepath.Join(m2.pki, "minions", id), filepath.Join(m2.pki, "restored")
		require.NoError(t, os.WriteFile(temp, []byte(text), 0o600))
		hourAgo := time.Now().Add(-time.Hour)
		require.NoError(t, errors.Join(os.Chtimes(temp, hourAgo, hourAgo), os.Rename(temp, file)))
	}
	for _, id := range []string{"replaced", "again"} {
		m1.put(acceptedDir, id, k[0])
	}
	await(t, files{"minions/replaced": k[0], "minions/again": k[0]}, m1, m2)
	m1.remove(acceptedDir, "replaced")
	m1.remove(acceptedDir, "again")
	await(t, files{}, m1, m2)
	m1.put(acceptedDir, "replaced", k[1])
	m1.put(pendingDir, "again", k[0])
	want := files{"minions/replaced": k[1], "minions_pre/again": k[0]}
	await(t, want, m1, m2)
	m2.synced()
	restore("replaced", k[0])
	restore("again", k[0])
	await(t, want, m1, m2)
	if found, _ := filepath.Glob(filepath.Join(m2.state, "keys-aside", "minions/replaced.*")); len(found) != 1 {
		t.Errorf("no copy of the restored file was kept: %v", found)
	}
	m2.move(pendingDir, acceptedDir, "again") // an operator may accept it all the same
	await(t, files{"minions/replaced": k[1], "minions/again": k[0]}, m1, m2)
}

// A node whose clock is ahead by a year deletes a key. Its minion may come again all the same.
func TestDeletionDatedInTheFuture(t *testing.T) {
	k := keyTexts()
	log, m1, m2 := pair(t)
	m1.put(acceptedDir, "m", k[0])
	await(t, files{"minions/m": k[0]}, m1, m2)
	v := log.View()
	if _, err := log.Propose(t.Context(), []state.Command{state.KeySet{
		ID: "m", State: state.KeyDeleted, BaseRev: v.KeyRev("m"), SeenRev: v.Rev(),
		Audit: state.Audit{By: "m2", At: time.Now().AddDate(1, 0, 0).UnixMilli()},
	}}); err != nil {
		t.Fatal(err)
	}
	await(t, files{}, m1, m2)
	m1.put(pendingDir, "m", k[0])
	await(t, files{"minions_pre/m": k[0]}, m1, m2)
}

func TestNewcomerAndFounder(t *testing.T) {
	k := keyTexts()
	log := newShared(t)
	m1 := newTestNode(t, "m1", log)
	m1.found = true
	m1.put(acceptedDir, "web", k[0])
	m1.put(pendingDir, "db", k[1])
	m1.put(deniedDir, "web", k[2])
	m1.start()
	await(t, files{"minions/web": k[0], "minions_pre/db": k[1], "minions_denied/web": k[2]}, m1)

	m2 := newTestNode(t, "m2", log)
	m2.put(acceptedDir, "web", k[3])  // another key for a known id
	m2.put(acceptedDir, "mail", k[2]) // unknown here
	m2.put(rejectedDir, "evil", k[3])
	m2.put(deniedDir, "mail", k[0])
	m2.start()
	await(t, files{
		"minions/web": k[0], "minions_pre/db": k[1], "minions_denied/web": k[2],
		"minions_pre/mail": k[2], "minions_rejected/evil": k[3],
	}, m1, m2)
	for _, glob := range []string{"minions/web.*", "minions/mail.*", "minions_denied/mail.*"} {
		if found, _ := filepath.Glob(filepath.Join(m2.state, "keys-aside", glob)); len(found) != 1 {
			t.Errorf("no copy of %s was kept: %v", glob, found)
		}
	}
	m2.move(pendingDir, acceptedDir, "mail") // an ordinary member from now on
	await(t, files{
		"minions/web": k[0], "minions_pre/db": k[1], "minions_denied/web": k[2],
		"minions/mail": k[2], "minions_rejected/evil": k[3],
	}, m1, m2)
}

func TestWithoutQuorumEditsWait(t *testing.T) {
	k := keyTexts()
	log, m1, m2 := pair(t)
	m1.put(acceptedDir, "web", k[0])
	await(t, files{"minions/web": k[0]}, m1, m2)
	log.quorum(false)
	m1.put(pendingDir, "db", k[1])
	m1.remove(acceptedDir, "web")
	patience.WaitFor(t, "a proposal has failed", func() bool { return logged(m1, "wait for consensus") })
	m1.move(pendingDir, acceptedDir, "db")
	m1.stop()
	m1.start() // and the node restarts meanwhile
	log.quorum(true)
	await(t, files{"minions/db": k[1]}, m1, m2)
}

func TestManyKeys(t *testing.T) {
	const n = 1500
	k := keyTexts()
	log := newShared(t)
	m1, m2 := newTestNode(t, "m1", log), newTestNode(t, "m2", log)
	m1.found = true
	want := files{}
	for i := range n {
		id := fmt.Sprintf("minion-%04d", i)
		m1.put(acceptedDir, id, k[i%4])
		want["minions/"+id] = k[i%4]
	}
	m1.start()
	m2.start()
	await(t, want, m1, m2)
	if _, batches := log.counts(); batches > 20 {
		t.Errorf("%d batches for %d keys", batches, n)
	}
	for i := range n {
		m1.move(acceptedDir, rejectedDir, fmt.Sprintf("minion-%04d", i))
	}
	moved := files{}
	for f, text := range want {
		moved["minions_rejected"+f[len("minions"):]] = text
	}
	await(t, moved, m1, m2)
}

func TestWaitSynced(t *testing.T) {
	k := keyTexts()
	log, m1, _ := pair(t)
	r, err := log.Propose(t.Context(), []state.Command{state.KeySet{ID: "web", State: state.KeyAccepted, Pub: k[0]}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.NoError(t, m1.dir.WaitSynced(ctx, r[0].Rev))
	check.Equal(t, m1.files()["minions/web"], k[0], "synced, but minions/web")
	done := make(chan error)
	go func() { done <- m1.dir.WaitSynced(t.Context(), r[0].Rev+100) }()
	m1.stop()
	if err := <-done; err != ErrClosed {
		t.Errorf("waiting while closing: %v", err)
	}
}
