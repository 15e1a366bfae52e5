package returns

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

func TestDisks_Former(t *testing.T) {
	var d disks
	first, second := &disk{}, &disk{}
	d.replaceDisk(first)
	files, stuck := d.newSync(), d.newSync()
	d.replaceDisk(second)
	first.fails.Store(true)
	if err := files(t.Context()); err == nil || errors.Is(err, errOthersSync) {
		t.Errorf("a former disk that fails: %v", err)
	}
	check.ErrorIs(t, stuck(t.Context()), errOthersSync, "the kernel reports an error once, and the other caller")
	for i, sync := range []func() error{
		func() error { return files(t.Context()) }, func() error { return stuck(t.Context()) },
	} {
		check.NoError(t, sync(), "caller", i, "when all is written again")
	}
	if n := first.syncs.Load(); n != 1 || !first.closed.Load() {
		t.Errorf("the former disk was synced %d times, closed: %v", n, first.closed.Load())
	}
	if n := second.syncs.Load(); n != 4 || second.closed.Load() {
		t.Errorf("the disk in use was synced %d times, closed: %v", n, second.closed.Load())
	}
}

func TestDisks_InUseAgain(t *testing.T) {
	var d disks
	first, second := &disk{}, &disk{}
	d.replaceDisk(first)
	d.replaceDisk(second)
	d.replaceDisk(first)
	if err := d.newSync()(t.Context()); err != nil || first.closed.Load() || !second.closed.Load() {
		t.Errorf("%v; closed: %v, %v", err, first.closed.Load(), second.closed.Load())
	}
	if first.syncs.Load() != 1 || second.syncs.Load() != 1 {
		t.Errorf("synced %d and %d times", first.syncs.Load(), second.syncs.Load())
	}
}

func TestDisks_Bounded(t *testing.T) {
	var d disks
	sync := d.newSync()
	for range maxFormer + 2 {
		d.replaceDisk(&disk{})
	}
	if len(d.former) != maxFormer {
		t.Errorf("%d former disks are held", len(d.former))
	}
	check.ErrorIs(t, sync(t.Context()), errOthersSync, "one was given up")
	check.NoError(t, sync(t.Context()))
}

// TestUse_FormerIsSynced: a journal gives nothing up before the disk has it that the former options name.
func TestUse_FormerIsSynced(t *testing.T) {
	w := newWorld(t)
	former, now := &disk{}, &disk{}
	s := w.open("a", func(c *Config) { c.Mode.Disk = former })
	changed := *s.mode.Load()
	changed.Disk = now
	w.set(func() { w.pyDoes = func(string) { s.Use(changed) } })
	must(t, func(f func([]byte, error)) { s.Defer(request(t, "web1"), f) })
	patience.WaitFor(t, "the sync of both", func() bool { return former.syncs.Load() > 0 && now.syncs.Load() > 0 })
	patience.WaitFor(t, "the end of the former one", former.closed.Load)
}

// TestUse_CacheIsSynced: without native returns what was written before is synced all the same.
func TestUse_CacheIsSynced(t *testing.T) {
	w := newWorld(t)
	s := w.open("a")
	must(t, func(f func([]byte, error)) { s.Take(request(t, "web1"), f) })
	cache := s.cache()
	patience.WaitFor(t, "the files", func() bool { return cache.Has(jid, "web1") })
	sync := s.written.newSync()
	dir := filepath.Join(w.dir, "a", "cache")
	require.NoError(t, os.Rename(dir, dir+".gone"))
	s.Use(Mode{Reasons: map[string]string{"_return": "job_cache is off"}})
	if err := sync(t.Context()); err == nil {
		t.Error("a job cache that is gone was synced")
	}
}
