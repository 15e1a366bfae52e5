package spool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// What a newer version has written is no damage: nothing may be passed over, renamed or begun again.
func TestNewerVersionIsRefused(t *testing.T) {
	for name, edit := range map[string]func(t *testing.T, dir, segment string){
		"directory": func(t *testing.T, dir, _ string) { overwrite(t, filepath.Join(dir, versionFile), 0, "2") },
		"segment": func(t *testing.T, _, segment string) {
			overwrite(t, segment, int64(len(segmentMagic)-1), "\x02records as this version does not write them")
			require.NoError(t, os.Truncate(segment, 60))
		},
		"record": func(t *testing.T, dir, segment string) {
			g, _ := parseSegmentName(filepath.Base(segment))
			body, err := AppendRecord(nil, Record{Minion: "m"})
			require.NoError(t, err)
			body[0] = recordVersion + 1
			info, err := os.Stat(segment)
			require.NoError(t, err)
			overwrite(t, segment, info.Size(), string(appendFrame(nil, g.salt, 4, uint64(info.Size()), body)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got sink
			got.set(errors.New("not now"))
			c := Config{Dir: t.TempDir(), Checkpoint: time.Millisecond, Consumers: []Consumer{{Name: "c", Consume: got.consume}}}
			s := open(t, c)
			add(t, s, 0, 3)
			require.NoError(t, s.Close())
			edit(t, c.Dir, journals(t, c.Dir)[0])
			before := journals(t, c.Dir)
			if _, err := tryOpen(c); !errors.Is(err, ErrNewer) {
				t.Errorf("error %v", err)
			}
			if after := journals(t, c.Dir); len(after) != len(before) || after[0] != before[0] {
				t.Errorf("%v became %v", before, after)
			}
		})
	}
}

// A journal of the version before has no mark, and gets one.
func TestJournalWithoutVersion(t *testing.T) {
	c := Config{Dir: t.TempDir()}
	require.NoError(t, open(t, c).Close())
	path := filepath.Join(c.Dir, versionFile)
	require.NoError(t, os.Remove(path))
	require.NoError(t, open(t, c).Close())
	if b, err := os.ReadFile(path); err != nil || string(b) != "1\n" {
		t.Errorf("%q, %v", b, err)
	}
}

func overwrite(t *testing.T, path string, at int64, with string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	if _, err := f.WriteAt([]byte(with), at); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, f.Close())
}

func nothing(context.Context) error { return nil }

// With Once a kill repeats nothing, a power loss what was done since the last checkpoint.
func TestOnceAndSync(t *testing.T) {
	var got sink
	c := Config{Dir: t.TempDir(), Checkpoint: time.Hour, Consumers: []Consumer{{
		Name: "c", Consume: got.consume, Once: true, Sync: nothing,
	}}}
	s := open(t, c)
	add(t, s, 0, 3)
	patience.WaitFor(t, "all is consumed", func() bool { return s.Stats().Consumers[0].Pending == 0 })
	for boot, want := range map[string]int{"": 0, "another": 3} { // the copies are what a kill leaves
		var again sink
		d := c
		d.Dir = t.TempDir()
		copyDir(t, c.Dir, d.Dir)
		d.Disk.Boot = boot
		d.Consumers = []Consumer{{Name: "c", Consume: again.consume, Once: true, Sync: nothing}}
		k := open(t, d)
		patience.WaitFor(t, "all is consumed", func() bool { return k.Stats().Consumers[0].Pending == 0 })
		if n := len(again.records()); n != want {
			t.Errorf("boot %q: %d again, want %d", boot, n, want)
		}
	}
}

// The name of a new cursor is on the disk before it is used, and without that the journal does not open: lost with a
// power failure it would repeat all there is.
func TestNewCursorIsOnDisk(t *testing.T) {
	var got sink
	dir, named := t.TempDir(), 0
	failure := errors.New("the disk fails")
	c := Config{Dir: dir, Consumers: []Consumer{{Name: "c", Consume: got.consume}}}
	c.Disk.Names = func(of string) error {
		if _, err := os.Stat(filepath.Join(of, "cursor.c")); err == nil && of == dir {
			named++
		}
		return failure
	}
	s, err := New(c)
	require.NoError(t, err)
	if err := s.Open(t.Context()); !errors.Is(err, failure) || named != 1 {
		t.Errorf("%v after %d", err, named)
	}
}

// What a killed process has done and not synced reaches its disk before the journal gives it up, also when Sync is about
// another disk by now.
func TestKilledBeforeSync(t *testing.T) {
	var got sink
	c := Config{Dir: t.TempDir(), Checkpoint: time.Hour, Consumers: []Consumer{{
		Name: "c", Consume: got.consume, Once: true, Sync: nothing,
	}}}
	s := open(t, c)
	add(t, s, 0, 3)
	patience.WaitFor(t, "all is consumed", func() bool { return s.Stats().Consumers[0].Pending == 0 })
	killed := t.TempDir()
	copyDir(t, c.Dir, killed)
	var order []string
	note := func(what string) { order = append(order, what) } // by the goroutine of the checkpoint
	c.Dir, c.Checkpoint = killed, time.Millisecond
	c.Disk.All = func() { note("all") }
	c.Consumers[0].Sync = func(context.Context) error { note("sync"); return nil }
	k := open(t, c)
	patience.WaitFor(t, "its progress is saved", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.consumers[0].durable == 3
	})
	add(t, k, 3, 6)
	patience.WaitFor(t, "more is saved", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.consumers[0].durable == 6
	})
	require.NoError(t, k.Close())
	if order[0] != "all" || order[1] != "sync" || slices.Contains(order[1:], "all") {
		t.Errorf("%v", order)
	}
}

// A disk without room for the mark is no reason not to deliver what is there.
func TestJournalWithoutVersion_FullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,nr_inodes=8"); err != nil {
		t.Skipf("no file system of its own: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	var got sink
	got.set(errors.New("not now"))
	c := Config{Dir: dir, SegmentBytes: 4096, Consumers: []Consumer{{Name: "c", Consume: got.consume}}}
	s := open(t, c)
	add(t, s, 0, 3)
	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, versionFile)))
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	require.NoError(t, err)
	for b := make([]byte, 4096); err == nil; {
		_, err = ballast.Write(b)
	}
	_ = ballast.Close()
	got.set(nil)
	k := open(t, c)
	patience.WaitFor(t, "the records", func() bool { return k.Stats().Consumers[0].Pending == 0 })
	if n := len(got.records()); n != 3 {
		t.Errorf("%d records", n)
	}
}
