package keydir

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func newTestDisk(t *testing.T) (*disk, *writer) {
	t.Helper()
	root := t.TempDir()
	for p := range places {
		require.NoError(t, os.Mkdir(filepath.Join(root, p.String()), 0o750))
	}
	d := newDisk(root, &invalidEntries{log: slog.New(slog.DiscardHandler)})
	return d, &writer{disk: d, mode: 0o640, overruled: &overruledFiles{dir: t.TempDir()}}
}

func (d *disk) mustPut(t *testing.T, p place, id, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(d.filePath(p, id), []byte(text), 0o600))
}

func TestDiskState_Precedence(t *testing.T) {
	k := keyTexts()
	d, _ := newTestDisk(t)
	d.mustPut(t, pendingDir, "web", k[0])
	d.mustPut(t, acceptedDir, "web", k[1])
	d.mustPut(t, acceptedDir, "db", k[1])
	d.mustPut(t, rejectedDir, "db", "half a k")
	d.mustPut(t, rejectedDir, "mail", k[2]+"\r\n")
	d.mustPut(t, deniedDir, "mail", k[3])
	d.mustPut(t, pendingDir, "tmpab_12cd9", k[0])
	require.NoError(t, d.scanAll())
	for _, c := range []struct {
		id            string
		key           entry
		twice, temp   bool
		garbage       bool
		deniedPresent bool
	}{
		{id: "web", key: entry{state.KeyAccepted, printOf(k[1])}, twice: true},
		{id: "db", key: entry{state.KeyAccepted, printOf(k[1])}, twice: true},
		{id: "mail", key: entry{state.KeyRejected, printOf(k[2])}, deniedPresent: true},
		{id: "tmpab_12cd9", key: entry{state.KeyPending, printOf(k[0])}, temp: true},
		{id: "nobody"},
	} {
		s := d.foundFor(c.id)
		if s.key.entry != c.key || s.key.twice != c.twice || s.key.temp != c.temp || s.key.garbage != c.garbage {
			t.Errorf("%s: %+v", c.id, s.key)
		}
		if (s.denied.entry != entry{}) != c.deniedPresent {
			t.Errorf("%s: denied %+v", c.id, s.denied)
		}
	}
}

func TestDisk_SameSizeSameTick(t *testing.T) {
	k := keyTexts()
	d, _ := newTestDisk(t)
	for i := range 50 { // as fast as the clock of the file system cannot tell
		text := k[i%2]
		d.mustPut(t, acceptedDir, "web", text)
		d.refreshKeys([]string{"web"})
		if got := d.foundFor("web").key.Print; got != printOf(text) {
			t.Fatalf("change %d was not seen", i)
		}
	}
}

func TestCheckText(t *testing.T) {
	good := keyTexts()[0]
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"as sent":           {good, true},
		"with newline":      {good + "\n", true},
		"with CRLF":         {strings.ReplaceAll(good, "\n", "\r\n"), true},
		"empty":             {"", false},
		"cut":               {good[:len(good)-5], false},
		"cut in the middle": {good[:200], false},
		"two":               {good + "\n" + good, false},
		"private":           {strings.ReplaceAll(good, "PUBLIC", "PRIVATE"), false},
		"huge":              {strings.Repeat(" ", state.MaxPub) + good, false},
		"NUL":               {good + "\x00", false},
	} {
		text, err := checkText([]byte(c.text))
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if c.ok && (text != c.text || printOf(text) != printOf(good)) {
			t.Errorf("%s: not the same key any more", name)
		}
	}
}

func write1(d *disk, w *writer, id string, e entry, text string, overruled bool) error {
	d.refreshKeys([]string{id})
	return w.applyWritings([]writing{{subject: subject{id: id}, want: e, text: text, overruled: overruled}})[0]
}

func TestWrite(t *testing.T) {
	k := keyTexts()
	d, w := newTestDisk(t)
	d.mustPut(t, pendingDir, "web", k[0])
	d.mustPut(t, rejectedDir, "web", k[1])
	require.NoError(t, os.WriteFile(d.filePath(acceptedDir, keyCache), nil, 0o600))
	accepted := entry{state.KeyAccepted, printOf(k[2])}
	require.NoError(t, write1(d, w, "web", accepted, k[2], true))
	if s := d.foundFor("web"); s.key.entry != accepted || s.key.twice {
		t.Errorf("afterwards: %+v", s.key)
	}
	info, err := os.Stat(d.filePath(acceptedDir, "web"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if os.Geteuid() == 0 && info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Error("owner is not that of the directory")
	}
	if _, err := os.Stat(d.filePath(acceptedDir, keyCache)); !os.IsNotExist(err) {
		t.Error("the master's cached list of minions is still there")
	}
	for _, p := range []place{pendingDir, rejectedDir} {
		if found, _ := filepath.Glob(filepath.Join(w.overruled.dir, p.String(), "web.*")); len(found) != 1 {
			t.Errorf("no copy of %s/web: %v", p, found)
		}
	}
	before := info.ModTime()
	require.NoError(t, write1(d, w, "web", entry{state.KeyAccepted, printOf(k[3])}, k[3], false))
	if info, err = os.Stat(d.filePath(acceptedDir, "web")); err != nil || !info.ModTime().After(before) {
		t.Errorf("time %v after %v, %v: a master would go on with the old key", info.ModTime(), before, err)
	}
	if err := write1(d, w, "web", entry{}, "", false); err != nil || !d.foundFor("web").isEmpty() {
		t.Errorf("deleted: %v, %+v", err, d.foundFor("web"))
	}
	if names, _ := os.ReadDir(d.dirPath(acceptedDir)); len(names) != 0 {
		t.Errorf("left over: %v", names)
	}
}

func TestWriteVerifiesFirst(t *testing.T) {
	k := keyTexts()
	d, w := newTestDisk(t)
	d.mustPut(t, acceptedDir, "web", k[0])
	d.refreshKeys([]string{"web"})
	d.mustPut(t, rejectedDir, "web", k[1]) // after the look
	err := w.applyWritings([]writing{{subject: subject{id: "web"}, want: entry{}}})[0]
	if !errors.Is(err, errChanged) {
		t.Fatalf("%v, want errChanged", err)
	}
	if _, err := os.Stat(d.filePath(acceptedDir, "web")); err != nil {
		t.Error("removed in spite of that")
	}
	if names, _ := filepath.Glob(filepath.Join(d.root, "*", tempPrefix+"*")); len(names) != 0 {
		t.Errorf("left over: %v", names)
	}
}

func TestSweepAndOverruledFilesAreBounded(t *testing.T) {
	k := keyTexts()
	d, w := newTestDisk(t)
	d.mustPut(t, acceptedDir, tempPrefix+"123", "half")
	w.removeTemps()
	if _, err := os.Stat(d.filePath(acceptedDir, tempPrefix+"123")); !os.IsNotExist(err) {
		t.Error("a temporary file of a predecessor is still there")
	}
	w.overruled.max = 3
	for i := range 10 {
		require.NoError(t, w.overruled.storeFile(acceptedDir, fmt.Sprint("m", i), []byte(k[0])))
	}
	require.NoError(t, w.overruled.storeFile(acceptedDir, "m0", []byte(k[0]))) // the same once more
	long := strings.Repeat("x", 255)
	check.NoError(t, w.overruled.storeFile(pendingDir, long, []byte(k[0])), "an id of 255 bytes")
	if names, _ := os.ReadDir(filepath.Join(w.overruled.dir, "minions")); len(names) != 3 {
		t.Errorf("%d copies, at most 3", len(names))
	}
}

func TestBaseFile(t *testing.T) {
	dir := t.TempDir()
	if b, err := loadBase(dir); b != nil || err != nil {
		t.Fatalf("without a file: %v, %v", b, err)
	}
	b := newBase(joining)
	b.UUID, b.Seen, b.Stamp, b.Prev = "u", 7, "s", "p"
	b.Keys["web"] = based{entry{state.KeyAccepted, "A"}, 5}
	b.Keys["gone"] = based{entry{}, 9}
	b.Denied["web"] = based{entry{deniedState, "B"}, 6}
	require.NoError(t, saveBase(dir, b))
	got, err := loadBase(dir)
	if err != nil || fmt.Sprint(*got) != fmt.Sprint(*b) || got.highestRev() != 9 {
		t.Errorf("%+v, %v\nwant %+v", got, err, b)
	}
	for name, content := range map[string]string{
		"cut":            `{"v":1,"keys":{"web"`,
		"a newer format": `{"v":2}`,
		"empty":          "",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, baseName), []byte(content), 0o600))
		if _, err := loadBase(dir); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMarker(t *testing.T) {
	m := newMarker(t.TempDir(), "m1")
	b := newBase(fresh)
	b.Stamp, b.Prev = "two", "one"
	for _, c := range []struct {
		stamp string
		fits  bool
	}{{"two", true}, {"one", true}, {"zero", false}, {"", false}} {
		if c.stamp != "" {
			require.NoError(t, m.writeStamp(c.stamp))
		} else if err := os.Remove(m.path); err != nil {
			t.Fatal(err)
		}
		if fits, err := m.matchesBase(b); fits != c.fits || err != nil {
			t.Errorf("marker %q: %v, %v", c.stamp, fits, err)
		}
	}
}

func TestSettling(t *testing.T) {
	w := newWorld(1, fresh)
	n := w.nodes[0]
	n.pos = len(w.views) - 1
	n.put(pendingDir, "web", w.print("k"))
	n.round()
	if len(n.flights) != 0 {
		t.Fatal("proposed at first sight")
	}
	w.now = w.now.Add(59 * time.Millisecond)
	n.round()
	n.put(pendingDir, "web", w.print("k2")) // written over: the wait begins anew
	w.now = w.now.Add(10 * time.Millisecond)
	n.round()
	w.now = w.now.Add(59 * time.Millisecond)
	n.round()
	if len(n.flights) != 0 {
		t.Fatal("proposed before it has settled")
	}
	w.now = w.now.Add(time.Millisecond)
	n.round()
	if len(n.flights) != 1 {
		t.Fatal("not proposed after it has settled")
	}
}
