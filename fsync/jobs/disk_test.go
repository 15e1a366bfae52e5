package jobs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func testDisk(t *testing.T) disk {
	return newDisk(Master{CacheDir: t.TempDir(), UID: -1, GID: -1, HashType: "sha256"})
}

// openTest makes a job and opens its directory.
func openTest(t *testing.T, d disk, jid string) int {
	t.Helper()
	fd, err := d.openJob(jid, time.Now().UnixNano(), true)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func mustPut(t *testing.T, d disk, fd int, r *record, want bool) {
	t.Helper()
	isNew, _, err := d.putReturn(fd, r, recentReturns{})
	if err != nil || isNew != want {
		t.Fatalf("%s: new %v, %v", r.name, isNew, err)
	}
}

// What a kill leaves behind holds nothing up: temporary names of ours, and a minion's directory without its return.
func TestLeftovers(t *testing.T) {
	d := testDisk(t)
	fd := openTest(t, d, "20260102000000000001")
	dir := d.path("20260102000000000001")
	for _, path := range []string{tempName("m1"), "m2"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, path), 0o755))
	}
	for _, path := range []string{tempName("m1") + "/" + outFile, tempName(loadFile)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte("half"), 0o600))
	}
	for _, id := range []string{"m1", "m2"} {
		r := &record{name: id, ret: true, data: ret(id), out: []byte{0xa1, 'x'}, hasO: true}
		mustPut(t, d, fd, r, true)
		mustPut(t, d, fd, &record{name: id, ret: true, data: ret("another")}, false)
		if raw, err := os.ReadFile(filepath.Join(dir, id, returnFile)); err != nil || string(raw) != string(r.data) {
			t.Errorf("%s: %q %v", id, raw, err)
		}
		if raw, err := os.ReadFile(filepath.Join(dir, id, outFile)); err != nil || string(raw) != string(r.out) {
			t.Errorf("%s: %q %v", id, raw, err)
		}
	}
	require.NoError(t, d.put(fd, loadFile, load("j", false), 5e9))
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("left: %v %v", entries, err)
	}
	s, err := d.look("20260102000000000001")
	if err != nil || s.returns() != 2 || s.half {
		t.Errorf("%+v %v", s, err)
	}
}

// Equal returns share one file; what is different does not.
func TestRecentReturns(t *testing.T) {
	d := testDisk(t)
	fd := openTest(t, d, "20260102000000000001")
	same := recentReturns{}
	for i := range 10 {
		r := &record{name: fmt.Sprint("m", i), ret: true, data: ret(fmt.Sprint(i % 2))}
		if isNew, _, err := d.putReturn(fd, r, same); err != nil || !isNew {
			t.Fatal(isNew, err)
		}
	}
	for i := range 10 {
		path := filepath.Join(d.path("20260102000000000001"), fmt.Sprint("m", i), returnFile)
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil || st.Nlink != 5 || st.Mode&0o777 != 0o644 {
			t.Errorf("%s: %+v %v", path, st, err)
		}
		if raw, err := os.ReadFile(path); err != nil || string(raw) != string(ret(fmt.Sprint(i%2))) {
			t.Errorf("%s: %q %v", path, raw, err)
		}
	}
}

// What is written has the modes that the master would give it, whatever this process's umask is, and what takes another
// file's place keeps its mode.
func TestModes(t *testing.T) {
	for _, own := range []int{0o022, 0o077, 0} {
		for _, mask := range []uint32{0o022, 0o077, 0o027, 0o002, 0} {
			t.Run(fmt.Sprintf("%03o under %03o", mask, own), func(t *testing.T) { testModes(t, own, mask) })
		}
	}
}

func testModes(t *testing.T, own int, mask uint32) {
	const jid = "20260102000000000001"
	dir := t.TempDir()
	defer unix.Umask(unix.Umask(own))
	d := newDisk(Master{
		CacheDir: dir, UID: -1, GID: -1, HashType: "sha256", Umask: func() uint32 { return mask }, Verified: true,
	})
	fd := openTest(t, d, jid)
	mustPut(t, d, fd, &record{name: "m1", ret: true, data: ret("m1"), out: []byte{0xa1, 'x'}, hasO: true}, true)
	for _, name := range []string{loadFile, minionsFile} {
		require.NoError(t, d.put(fd, name, load(jid, false), 5e9))
	}
	file, made := os.FileMode(0o666&^mask), os.FileMode(0o777&^mask)
	want := map[string]os.FileMode{
		"": made, "..": made, "../..": 0o755, jidFile: file, loadFile: file, minionsFile: file, "m1": made,
		"m1/" + returnFile: file,
		"m1/" + outFile:    file,
	}
	require.NoError(t, os.Chmod(filepath.Join(d.path(jid), minionsFile), 0o640))
	want[minionsFile] = 0o640
	require.NoError(t, d.put(fd, minionsFile, load(jid, true), 6e9))
	for name, mode := range want {
		info, err := os.Stat(filepath.Join(d.path(jid), name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q: %v %v, want %v", name, info.Mode(), err, mode)
		}
	}
}

// Links in a job cache lead nowhere.
func TestLinksAreNotFollowed(t *testing.T) {
	d := testDisk(t)
	fd := openTest(t, d, "20260102000000000001")
	dir := d.path("20260102000000000001")
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	for _, name := range []string{loadFile, ".minions.s.p", "m1"} {
		require.NoError(t, os.Symlink(secret, filepath.Join(dir, name)))
	}
	s, err := d.look("20260102000000000001")
	if err != nil || len(s.items) > 0 {
		t.Errorf("%+v %v", s, err)
	}
	if _, err := d.read(fd, loadFile); err == nil {
		t.Error("a link was read")
	}
	require.NoError(t, d.put(fd, loadFile, load("j", false), 5e9))
	if raw, err := os.ReadFile(secret); err != nil || string(raw) != "secret" {
		t.Errorf("%q %v", raw, err)
	}
}

func TestRank(t *testing.T) {
	for _, c := range []struct {
		name string
		raw  []byte
		want byte
	}{
		{loadFile, load("j", false), rankGood},
		{loadFile, load("j", true), rankPoor},
		{loadFile, []byte{0x80}, rankPoor},
		{loadFile, nil, rankPoor},
		{loadFile, []byte{0x81, 0xa1}, rankPoor},
		{loadFile, []byte{0xc0, 0xc0}, rankPoor},
		{minionsFile, list(), rankPoor},
		{minionsFile, list("m1"), rankGood},
		{".minions.s.p", list("m1"), rankGood},
		{noCacheFile, nil, rankGood},
		{endFile, []byte("2026, Jan 02"), rankGood},
	} {
		check.Equal(t, rankOf(c.name, c.raw), c.want, c.name, c.raw)
	}
	good, poor := item{rank: rankGood, mtime: 1e9, size: 3}, item{rank: rankPoor, mtime: 9e9, size: 9}
	if !good.beats(poor) || poor.beats(good) || good.beats(good) {
		t.Error("rank")
	}
	if later := (item{rank: rankGood, mtime: 1e9 + 5e6, size: 1}); !later.beats(good) || good.beats(later) {
		t.Error("time")
	}
}

func TestKeep(t *testing.T) {
	for _, c := range []struct {
		major       int
		secs, hours int64
		want        time.Duration
		what        string
	}{
		{3006, 86400, 24, 24 * time.Hour, "defaults"},
		{3006, 86400, 2, 2 * time.Hour, "the old option alone"},
		{3007, 60, 2, time.Minute, "the new option wins"},
		{3008, 86400, 2, 24 * time.Hour, "3008 does not know the old one"},
		{3008, 0, 24, 0, "for ever"},
	} {
		check.Equal(t, Keep(c.major, c.secs, c.hours), c.want, c.what)
	}
}

// The oldest of the removed jobs are forgotten when there are more than maxGone.
func TestIndex_LimitOfRemoved(t *testing.T) {
	x := newIndex(testDisk(t), time.Hour, time.Now, func() {})
	x.mu.Lock()
	defer x.mu.Unlock()
	old := time.Now().Add(-time.Hour).UnixNano()
	for i := range maxGone + 10 {
		j := x.add(fmt.Sprint(i))
		j.there, j.at = true, old
		x.drop(j)
	}
	if _, ok := x.gone["9"]; ok || len(x.gone) != maxGone || len(x.goneList) != maxGone || len(x.jobs)+len(x.places) > 0 {
		t.Errorf("%d removed, %d jobs, %d places", len(x.gone), len(x.jobs), len(x.places))
	}
}
