package missedjobs

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// clock is set by a test.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func openLedger(t *testing.T, path, boot string, c *clock) *Ledger {
	t.Helper()
	l := NewLedger(path, boot, c.read)
	require.NoError(t, l.Open())
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestLedger_ReadOnly has a directory that takes nothing for a while: a file from before, which lacks what was seen
// meanwhile, is removed as soon as it can be, and no later process trusts it.
func TestLedger_ReadOnly(t *testing.T) {
	for _, broken := range []string{"when it is opened", "while it is open"} {
		t.Run(broken, func(t *testing.T) {
			c := &clock{time.Unix(1000, 0)}
			path := filepath.Join(t.TempDir(), "seen-jobs")
			away := path + ".away"
			first := openLedger(t, path, "boot", c)
			require.NoError(t, first.Record("1"))
			second := NewLedger(path, "boot", c.read)
			if broken == "while it is open" {
				require.NoError(t, second.Open())
				require.NoError(t, second.file.Close()) // each write fails
			}
			require.NoError(t, os.Rename(path, away))
			require.NoError(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700)) // can neither be opened nor removed
			if broken == "when it is opened" && second.Open() == nil {
				t.Fatal("the ledger was opened")
			}
			c.now = time.Unix(2000, 0)
			_ = second.Record("2")
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, os.Rename(away, path))
			_ = second.Record("3") // and is killed

			third := openLedger(t, path, "boot", c)
			if has, since, err := third.Has("2"); err != nil || !has && since.Before(c.now) {
				t.Errorf("has %t since %s, %v", has, since, err)
			}
		})
	}
}

func TestLedger_SurvivesKill(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	path := filepath.Join(t.TempDir(), "seen-jobs")
	first := NewLedger(path, "boot", c.read)
	if _, _, err := first.Has("early"); !errors.Is(err, errNotOpen) {
		t.Errorf("before it is open: %v", err)
	}
	require.NoError(t, first.Record("early")) // before the process before it has closed the file
	require.NoError(t, first.Open())
	c.now = time.Unix(1010, 0)
	for range 2 {
		require.NoError(t, first.Record("1"))
	}

	second := openLedger(t, path, "boot", c) // the first was not closed
	for jid, want := range map[string]bool{"early": true, "1": true, "2": false} {
		has, since, err := second.Has(jid)
		if has != want || err != nil || !since.Equal(time.Unix(1000, 0).Add(maxIDSkew)) {
			t.Errorf("%s: %t since %s, %v", jid, has, since, err)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Size() != ledgerSize || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}

	c.now = time.Unix(2000, 0)
	other := openLedger(t, path, "another boot", c) // after a power loss what was not synced may be missing
	if has, since, _ := other.Has("1"); has || !since.Equal(c.now.Add(maxIDSkew)) {
		t.Errorf("after a boot: %t since %s", has, since)
	}
}

// TestLedger_Overflow: and says so, over a kill too, also when the clock went back.
func TestLedger_Overflow(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	path := filepath.Join(t.TempDir(), "seen-jobs")
	l := openLedger(t, path, "boot", c)
	c.now = time.Unix(5000, 0)
	require.NoError(t, l.Record("first"))
	c.now = time.Unix(2000, 0)
	for i := range ledgerSlots {
		require.NoError(t, l.Record(fmt.Sprint(i)))
	}
	require.NoError(t, l.Record("one more"))
	for name, l := range map[string]*Ledger{"this process": l, "the next": openLedger(t, path, "boot", c)} {
		if has, since, _ := l.Has("first"); has || !since.Equal(time.Unix(5000, 0).Add(maxIDSkew)) {
			t.Errorf("%s: the first is there: %t, since %s", name, has, since)
		}
		if has, _, _ := l.Has("0"); has {
			t.Errorf("%s: the second is there", name)
		}
		for _, jid := range []string{"1", "one more"} {
			if has, _, _ := l.Has(jid); !has {
				t.Errorf("%s: %s is not there", name, jid)
			}
		}
	}
}

// TestLedger_WriteFailure: no later process believes it.
func TestLedger_WriteFailure(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	path := filepath.Join(t.TempDir(), "seen-jobs")
	l := openLedger(t, path, "boot", c)
	require.NoError(t, l.Record("1"))
	require.NoError(t, l.file.Close()) // whatever the reason
	if err := l.Record("2"); err == nil {
		t.Fatal("no error")
	}
	require.NoError(t, l.Record("3")) // said once
	if has, _, err := l.Has("3"); !has || err != nil {
		t.Errorf("this process does not know: %t, %v", has, err)
	}
	c.now = time.Unix(1010, 0)
	if has, since, _ := openLedger(t, path, "boot", c).Has("1"); has || !since.Equal(c.now.Add(maxIDSkew)) {
		t.Errorf("the next has it: %t, since %s", has, since)
	}
	if err := NewLedger(filepath.Join(path, "no such"), "boot", c.read).Open(); err == nil {
		t.Error("opened where nothing can be")
	}
}

// FuzzLedger: whatever is in the file, what is noted then is there, and in the next process.
func FuzzLedger(f *testing.F) {
	c := &clock{time.Unix(1000, 0)}
	path := filepath.Join(f.TempDir(), "seen-jobs")
	l := NewLedger(path, "boot", c.read)
	require.NoError(f, errors.Join(l.Open(), l.Record("1"), l.Close()))
	whole, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(whole[headSize:headSize+3*slotSize], uint16(headSize))
	f.Add(whole[:headSize], uint16(0))
	f.Add([]byte{0xff, 0xff}, uint16(headSize+slotSize))
	f.Fuzz(func(t *testing.T, change []byte, at uint16) {
		b := bytes.Clone(whole)
		copy(b[min(int(at), len(b)):], change)
		path := filepath.Join(t.TempDir(), "seen-jobs")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		for range 2 {
			l := NewLedger(path, "boot", c.read)
			require.NoError(t, l.Open())
			require.NoError(t, l.Record("2"))
			if has, _, err := l.Has("2"); !has || err != nil {
				t.Fatalf("%t, %v", has, err)
			}
			require.NoError(t, l.Close())
		}
	})
}

// cache is a job cache in which a test saves jobs.
type cache struct {
	t   *testing.T
	dir string
	n   int
}

// save saves a load under an id that was made at made, in a file of at.
func (c *cache) save(made, at time.Time, change func(load map[string]any)) (jid string) {
	c.t.Helper()
	c.n++
	jid = made.UTC().Format("20060102150405") + fmt.Sprintf("%06d", c.n)
	load := map[string]any{"cmd": "publish", "fun": "test.ping", "arg": []any{}, "tgt": "*", "tgt_type": "glob",
		"jid": jid, "ret": ""}
	if change != nil {
		change(load)
	}
	b, err := saltwire.AppendAny(nil, load, saltwire.Disk)
	require.NoError(c.t, err)
	path := filepath.Join(c.dir, "jobs", fmt.Sprintf("%02x", c.n), jid, ".load.p")
	require.NoError(c.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(c.t, os.WriteFile(path, b, 0o600))
	for p := path; p != filepath.Join(c.dir, "jobs"); p = filepath.Dir(p) {
		require.NoError(c.t, os.Chtimes(p, at, at))
	}
	return jid
}

// TestRepublisher: what is published anew, and what is not.
func TestRepublisher(t *testing.T) {
	dir := t.TempDir()
	c := &clock{time.Now().Add(-time.Minute)}
	ledger := openLedger(t, filepath.Join(dir, "seen-jobs"), "boot", c)
	c.now = time.Now()
	in := &cache{t: t, dir: dir}
	ago := func(d time.Duration) time.Time { return c.now.Add(-d) }
	at := ago(10 * time.Second)

	missed := []string{in.save(ago(12*time.Second), ago(12*time.Second), nil), in.save(at, at, nil)}
	require.NoError(t, ledger.Record(in.save(at, at, nil))) // seen
	// nobody waits for it any more
	in.save(ago(20*time.Second), ago(20*time.Second), nil)
	in.save(ago(time.Second), ago(time.Second), nil)                                   // may still come
	in.save(ago(7*24*time.Hour), at, nil)                                              // a backup that was put back
	in.save(at, c.now.Add(time.Hour), nil)                                             // from the future
	in.save(at, at, func(load map[string]any) { delete(load, "cmd") })                 // a runner's
	in.save(at, at, func(load map[string]any) { load["return"] = true })               // kept from a return
	in.save(at, at, func(load map[string]any) { delete(load, "fun") })                 // nothing that was published
	in.save(at, at, func(load map[string]any) { load["jid"] = "../../etc" })           // no id
	in.save(at, at, func(load map[string]any) { load["arg"] = make([]byte, maxLoad) }) // too large
	stopped := in.save(at, at, nil)
	require.NoError(t, ledger.Record(in.save(ago(time.Second), ago(time.Second), func(load map[string]any) {
		load["fun"], load["arg"] = "saltutil.kill_job", []any{stopped}
	})))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "jobs", "aa", "bb", ".load.p"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "jobs", "aa", "cc"), 0o755))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "jobs", "aa", "cc", ".load.p")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs", "dd"), nil, 0o600))

	var got []string
	published := map[string][]byte{}
	off, fail := "switched off", error(nil)
	k := New(Config{
		Ledger: ledger, CacheDir: dir, Major: 3008, Off: func() string { return off },
		JobTimeout: func() time.Duration { return 15 * time.Second },
		Publish: func(plain []byte) error {
			peek, err := saltwire.PeekPub(plain)
			got = append(got, peek.JID)
			published[peek.JID] = plain
			require.NoError(t, ledger.Record(peek.JID))
			return errors.Join(err, fail)
		},
		Content: func(plain []byte) uint64 { return uint64(len(plain)) },
		Now:     c.read, Logger: slog.New(slog.DiscardHandler),
	})
	if k.publishMissed(t.Context()); len(got) > 0 {
		t.Errorf("published %q though it is off", got)
	}
	off = ""
	for range 2 { // once
		k.publishMissed(t.Context())
	}
	if strings.Join(got, " ") != strings.Join(missed, " ") {
		t.Errorf("published %q, want %q", got, missed)
	}
	first := published[missed[0]]
	if !k.Republished(missed[0], first) || k.Republished("1", first) || k.Republished(missed[0], append(first, 0)) {
		t.Errorf("republished %v", k.given)
	}

	c.now = c.now.Add(2 * time.Hour)
	fail = errors.New("no epoch")
	in.save(ago(5*time.Second), ago(5*time.Second), nil)
	if k.publishMissed(t.Context()); len(got) != 3 || k.Republished(missed[0], first) || len(k.given) != 1 {
		t.Errorf("published %q, republished %v", got, k.given)
	}
}

// TestRepublisher_ScansAfterConnection: a job that was given while nobody subscribed to the master is published some
// seconds after somebody does again.
func TestRepublisher_ScansAfterConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		c := &clock{time.Now().Add(-time.Minute)}
		ledger := NewLedger(filepath.Join(dir, "seen-jobs"), "boot", c.read)
		at := time.Now().Add(-10 * time.Second)
		in := &cache{t: t, dir: dir}
		jid := in.save(at, at, nil)
		var got []string
		k := New(Config{
			Ledger: ledger, CacheDir: dir, Major: 3008, Off: func() string { return "" },
			JobTimeout: func() time.Duration { return 15 * time.Second },
			Publish: func(plain []byte) error {
				peek, err := saltwire.PeekPub(plain)
				got = append(got, peek.JID)
				return errors.Join(err, ledger.Record(peek.JID))
			},
			Content: func(plain []byte) uint64 { return uint64(len(plain)) }, Released: func() bool { return false },
			Now: c.read, Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, k.Open(t.Context()))
		c.now = time.Now()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(got) > 0 {
			t.Errorf("published %q, and nobody has subscribed", got)
		}
		for range 2 {
			k.NotifyConnected()
			time.Sleep(scanDelay)
			synctest.Wait()
			if len(got) != 1 || got[0] != jid {
				t.Errorf("published %q, want %q once", got, jid)
			}
		}
		require.NoError(t, k.Close())
	})
}

// TestRepublisher_UnknownPast: what may have been published by a process whose ledger is lost is left alone.
func TestRepublisher_UnknownPast(t *testing.T) {
	dir := t.TempDir()
	c := &clock{time.Now()}
	in := &cache{t: t, dir: dir}
	at := c.now.Add(-5 * time.Second)
	in.save(at, at, nil)
	k := New(Config{
		Ledger: openLedger(t, filepath.Join(dir, "seen-jobs"), "boot", c), CacheDir: dir, Off: func() string { return "" },
		JobTimeout: func() time.Duration { return 15 * time.Second },
		Publish:    func([]byte) error { t.Error("published"); return nil },
		Now:        c.read, Logger: slog.New(slog.DiscardHandler),
	})
	k.publishMissed(t.Context())
}

// FuzzPublication: whatever is in a file, what comes out is a publication.
func FuzzPublication(f *testing.F) {
	for _, load := range []map[string]any{
		{"cmd": "publish", "fun": "test.ping", "arg": []any{}, "tgt": "*", "tgt_type": "glob", "jid": "20261128000000000001",
			"ret": ""},
		{"cmd": "publish", "fun": "a", "arg": nil, "tgt": []any{"x"}, "jid": "1", "ret": "",
			"kwargs": map[string]any{"delimiter": "|", "start_event": 1}},
	} {
		b, err := saltwire.AppendAny(nil, load, saltwire.Disk)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, load []byte) {
		plain, err := master{3008, "m1"}.buildPublication(load)
		if err != nil {
			return
		}
		if _, err := saltwire.PeekPub(plain); err != nil {
			t.Fatalf("%q: %v", plain, err)
		}
	})
}

// TestWasMadeAt: on a host in another time zone.
func TestWasMadeAt(t *testing.T) {
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC).In(time.Local)
	for jid, want := range map[string]bool{
		"20261128120000000001":    true,
		"20261128115945000001_42": true,
		"20261128115930000001":    false,
		"20261128173000000001":    false, // local time
		"2026112812000000000":     false,
		"2026x128120000000001":    false,
		"":                        false,
	} {
		if got := wasMadeAt(jid, at); got != want {
			t.Errorf("%q: %t", jid, got)
		}
	}
}

// TestListJobs_NamedPipe: the user of the master cannot block a scan.
func TestListJobs_NamedPipe(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "jobs"), 0o600))
	if _, err := listJobs(t.Context(), dir, time.Time{}, time.Now()); err == nil {
		t.Error("a named pipe is read as a job cache")
	}
	if jobs, err := listJobs(t.Context(), t.TempDir(), time.Time{}, time.Now()); err != nil || jobs != nil {
		t.Errorf("no job cache: %v, %v", jobs, err)
	}
}

// TestClose_Takeover: the new process has seen jobs that are not in the ledger of the old one.
func TestClose_Takeover(t *testing.T) {
	for _, released := range []bool{false, true} {
		c := &clock{time.Unix(1000, 0)}
		path := filepath.Join(t.TempDir(), "seen-jobs")
		k := New(Config{Ledger: NewLedger(path, "boot", c.read), Released: func() bool { return released },
			Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, k.Open(t.Context()))
		k.Seen("1")
		require.NoError(t, k.Close())
		has, _, err := openLedger(t, path, "boot", c).Has("1")
		if err != nil || has == released {
			t.Errorf("released %t: the next process has it: %t, %v", released, has, err)
		}
	}
}
