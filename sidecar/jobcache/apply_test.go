package jobcache_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/eventbus"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
)

const testJID = "20261121040506789012"

// options stand in for a master's configuration.
type options map[string]any

func (o options) Raw(name string) (any, bool) { v, ok := o[name]; return v, ok }
func (o options) Bool(name string) bool {
	switch v := o[name].(type) {
	case bool:
		return v
	case string:
		return v != ""
	}
	return false
}
func (o options) Int(name string) int64 { v, _ := o[name].(int64); return v }
func (o options) Text(name string) string {
	s, _ := o[name].(string)
	return s
}
func (o options) Strings(name string) []string { v, _ := o[name].([]string); return v }

func stockOptions() options {
	return options{"master_job_cache": "local_cache", "job_cache": true, "hash_type": "sha256",
		"max_event_size": int64(1 << 20)}
}

func newCache(t testing.TB, o options, change ...func(*jobcache.Config)) (*jobcache.Cache, string) {
	t.Helper()
	dir := t.TempDir()
	c, err := newCacheIn(dir, o, change...)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c, dir
}

func newCacheIn(dir string, o options, change ...func(*jobcache.Config)) (*jobcache.Cache, error) {
	c := jobcache.Config{
		Options: o, Version: localmaster.Version{Major: 3008}, CacheDir: dir, UID: -1, GID: -1,
		Keys: &testKeys{ids: []string{"m1", "m2"}},
	}
	for _, f := range change {
		f(&c)
	}
	return jobcache.New(c)
}

func plan(t testing.TB, c *jobcache.Cache, load dict) jobcache.Plan {
	t.Helper()
	p, err := c.Plan(wire(t, load), jobcache.Facts{Received: time.Unix(1790000000, 0), JID: testJID})
	require.NoError(t, err)
	return p
}

func apply(t testing.TB, c *jobcache.Cache, load dict) {
	t.Helper()
	require.NoError(t, c.Apply(context.Background(), plan(t, c, load)))
}

// jobDir finds the only job's directory.
func jobDir(t *testing.T, dir string) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dir, "jobs/*/*"))
	if len(found) != 1 {
		t.Fatalf("%d jobs", len(found))
	}
	return found[0]
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// A job that no one asked for is written alike whether its directory was there or not, and so when it is written again.
func TestUnaskedJob(t *testing.T) {
	var trees []map[string]string
	var place string
	for _, there := range []bool{false, true} {
		o := stockOptions()
		o["job_cache_store_endtime"] = true
		c, dir := newCache(t, o)
		p := plan(t, c, ret("req", "m1", "out", "txt"))
		if !p.Unasked() {
			t.Fatal("not taken for one")
		}
		if there {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, place), 0o755))
		}
		for range 2 {
			require.NoError(t, c.Apply(context.Background(), p))
			trees = append(trees, files(t, jobDir(t, dir)))
		}
		place = strings.TrimPrefix(jobDir(t, dir), dir)
	}
	for _, tree := range trees {
		if len(tree) != 6 || !maps.Equal(tree, trees[0]) {
			t.Errorf("%q, and at first %q", tree, trees[0])
		}
	}
}

// files are the contents of all files below a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all[strings.TrimPrefix(path, dir)] = read(t, path)
		}
		return err
	})
	require.NoError(t, err)
	return all
}

// What a kill left unfinished is completed.
func TestApply_AfterKill(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, job string){
		"our own beginning": func(t *testing.T, job string) {
			temps, _ := filepath.Glob(filepath.Join(job, ".saltcluster-*"))
			if len(temps) != 0 {
				t.Errorf("left behind: %v", temps)
			}
		},
		"a master's empty directory": func(t *testing.T, job string) { mkdir(t, filepath.Join(job, "m2")) },
		"a master's temporary file": func(t *testing.T, job string) {
			mkdir(t, filepath.Join(job, "m2"))
			require.NoError(t, os.WriteFile(filepath.Join(job, "m2", ".___atomic_writeabc"), []byte("x"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, dir := newCache(t, stockOptions())
			apply(t, c, ret(testJID, "m1"))
			job := jobDir(t, dir)
			leave(t, job)
			apply(t, c, ret(testJID, "m2", "return", "two", "out", "txt"))
			check.Contains(t, read(t, filepath.Join(job, "m2/return.p")), "two", "return.p")
			check.Equal(t, read(t, filepath.Join(job, "m2/out.p")), "\xa3txt", "out.p")
		})
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.Mkdir(path, 0o755))
}

func TestDuplicateStaysTheFirst(t *testing.T) {
	c, dir := newCache(t, stockOptions())
	apply(t, c, ret(testJID, "m1", "return", "one"))
	apply(t, c, ret(testJID, "m1", "return", "another", "out", "txt"))
	job := jobDir(t, dir)
	check.Contains(t, read(t, filepath.Join(job, "m1/return.p")), "one", "return.p")
	if names, _ := filepath.Glob(filepath.Join(job, "m1/*")); len(names) != 1 {
		t.Errorf("files %v", names)
	}
}

func TestJobRemovedUnderUs(t *testing.T) {
	c, dir := newCache(t, stockOptions())
	apply(t, c, ret(testJID, "m1"))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "jobs")))
	apply(t, c, ret(testJID, "m2"))
	job := jobDir(t, dir)
	for _, name := range []string{"jid", ".load.p", "m2/return.p"} {
		if _, err := os.Stat(filepath.Join(job, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestNoCacheJob(t *testing.T) {
	c, dir := newCache(t, stockOptions())
	apply(t, c, ret(testJID, "m1"))
	job := jobDir(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(job, "nocache"), nil, 0o644))
	apply(t, c, ret(testJID, "m2"))
	if _, err := os.Stat(filepath.Join(job, "m2")); err == nil {
		t.Error("a return was stored in a nocache job")
	}
}

func TestDiskErrorsComeBack(t *testing.T) {
	c, dir := newCache(t, stockOptions())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs"), nil, 0o644))
	err := c.Apply(context.Background(), plan(t, c, ret(testJID, "m1")))
	if !errors.Is(err, syscall.ENOTDIR) {
		t.Fatalf("error %v", err)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "jobs")))
	apply(t, c, ret(testJID, "m1"))
	check.NoError(t, c.Sync(context.Background()))
}

func TestNative(t *testing.T) {
	mods := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(mods, "returners"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(mods, "returners/local_cache.py"), nil, 0o644))
	for _, c := range []struct {
		name  string
		value any
		ok    bool
	}{
		{"id", "m", true}, {"job_cache", false, false}, {"ext_job_cache", "redis", false},
		{"master_job_cache", "pgjsonb", false},
		{"hash_type", "blake2b", false}, {"hash_type", "md5", true}, {"cluster_id", "c", false},
		{"extension_modules", mods, false},
		{"returner_dirs", []string{filepath.Join(mods, "returners")}, false}, {"module_dirs", []string{mods}, false},
		{"enable_ssh_minions", true, false}, {"master_stats", true, false},
		{"metrics", map[string]any{"enabled": true}, false}, {"metrics", map[string]any{"enabled": false}, true},
	} {
		o := stockOptions()
		o[c.name] = c.value
		ok, reason := jobcache.Native(o, 3008, "_return")
		if ok != c.ok || (reason == "") != ok {
			t.Errorf("%s %v: %v %q", c.name, c.value, ok, reason)
		}
	}
	if ok, _ := jobcache.Native(stockOptions(), 3009, "_return"); ok {
		t.Error("an unknown version is native")
	}
	if ok, _ := jobcache.Native(stockOptions(), 3008, "_pillar"); ok {
		t.Error("_pillar is native")
	}
}

func TestAssignedIDsDiffer(t *testing.T) {
	c, _ := newCache(t, stockOptions())
	seen, now := map[string]bool{}, time.Now()
	for range 1000 {
		jid := c.Assign("req", now)
		if len(jid) != 20 || seen[jid] {
			t.Fatalf("assigned %q", jid)
		}
		seen[jid] = true
	}
	check.Equal(t, c.Assign(testJID, now), "", "a load with a jid was given another")
}

// fakeBus counts events and refuses some.
type fakeBus struct {
	up      bool
	errs    []error
	flushes []error
	fired   []string
}

func (b *fakeBus) Takes() bool { return b.up }
func (b *fakeBus) Flush(context.Context) error {
	if len(b.flushes) == 0 {
		return nil
	}
	err := b.flushes[0]
	b.flushes = b.flushes[1:]
	return err
}
func (b *fakeBus) FireTrimmed(_ context.Context, tag string, _ []byte) error {
	if len(b.errs) > 0 {
		err := b.errs[0]
		b.errs = b.errs[1:]
		if err != nil {
			return err
		}
	}
	b.fired = append(b.fired, tag)
	return nil
}

func TestFire(t *testing.T) {
	c, _ := newCache(t, stockOptions())
	var plans []jobcache.Plan
	for i := range 5 {
		plans = append(plans, plan(t, c, ret(testJID, fmt.Sprintf("m%d", i))))
	}
	b := &fakeBus{errs: []error{nil, eventbus.ErrBusFull, nil, eventbus.ErrTag}}
	f := jobcache.NewFirer(jobcache.FirerConfig{Bus: b, Burst: 2, Rate: 1000})
	if n, err := f.Fire(context.Background(), plans); n != 0 || !errors.Is(err, jobcache.ErrBusDown) {
		t.Errorf("bus down: %d, %v", n, err)
	}
	b.up = true
	// the master goes before it has read them: they are queued, and not fired again
	b.flushes = []error{eventbus.ErrBusDown}
	if n, err := f.Fire(context.Background(), plans); n != 0 || !errors.Is(err, jobcache.ErrBusDown) {
		t.Errorf("master gone: %d, %v", n, err)
	}
	if n, err := f.Fire(context.Background(), plans); n != 5 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	want := "m0 m1 m3 m4" // m2's tag was refused for good
	var got []string
	for _, tag := range b.fired {
		got = append(got, filepath.Base(tag))
	}
	if strings.Join(got, " ") != want {
		t.Errorf("fired %v, want %s", got, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.Fire(ctx, plans); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// reader is a bus with a subscriber that takes so many events per second, as 3008 has it: whoever is further behind
// than the limit is cut.
type reader struct {
	rate, behind, most float64
	last               time.Time
}

func (r *reader) Takes() bool                 { return true }
func (r *reader) Flush(context.Context) error { return nil }
func (r *reader) FireTrimmed(context.Context, string, []byte) error {
	now := time.Now()
	r.behind = max(r.behind-now.Sub(r.last).Seconds()*r.rate, 0) + 1
	r.last = now
	r.most = max(r.most, r.behind)
	return nil
}

// A subscriber as slow as a command line keeps its connection to the bus of 3008, whatever pub_server_write_queue_size,
// however many return.
func TestPaceOfEvents(t *testing.T) {
	c, _ := newCache(t, stockOptions())
	one := plan(t, c, ret(testJID, "m1"))
	for _, limit := range []int{10_000, 1_000, 100} {
		synctest.Test(t, func(t *testing.T) {
			r := &reader{rate: 600, last: time.Now()}
			f := jobcache.NewFirer(jobcache.FirerConfig{Bus: r, Behind: limit})
			began := time.Now()
			for range 30_000 {
				if _, err := f.Fire(t.Context(), []jobcache.Plan{one}); err != nil {
					t.Fatal(err)
				}
			}
			if r.most >= float64(limit) {
				t.Errorf("it is up to %.0f behind, of %d", r.most, limit)
			}
			if took := time.Since(began); took > time.Minute+time.Second {
				t.Errorf("30,000 events took %s", took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // jobs of one minion each are held up by none of that
		f := jobcache.NewFirer(jobcache.FirerConfig{Bus: &reader{rate: 600, last: time.Now()}, Behind: 10_000})
		began := time.Now()
		for i := range 30_000 {
			p := one
			p.Jobs = []jobcache.Job{{JID: fmt.Sprint(i), Minion: "m1"}}
			if _, err := f.Fire(t.Context(), []jobcache.Plan{p}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 14*time.Second {
			t.Errorf("30,000 jobs' events took %s", took)
		}
	})
}

func BenchmarkReturn(b *testing.B) {
	c, _ := newCache(b, stockOptions())
	loads := make([][]byte, b.N)
	for i := range loads {
		loads[i] = wire(b, ret(fmt.Sprintf("20261121040506%06d", i/5000), fmt.Sprintf("minion%06d", i%5000)))
	}
	at := time.Now()
	b.Run("plan", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if _, err := c.Plan(loads[0], jobcache.Facts{Received: at}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkApply(b *testing.B) {
	c, _ := newCache(b, stockOptions())
	at := time.Now()
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	for i := range b.N {
		load := wire(b, ret(fmt.Sprintf("20261121040506%06d", i/5000), fmt.Sprintf("minion%06d", i%5000)))
		p, err := c.Plan(load, jobcache.Facts{Received: at})
		if err == nil {
			err = c.Apply(context.Background(), p)
		}
		require.NoError(b, err)
	}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(cpu)/1000/float64(b.N), "cpu-µs/op")
}

func FuzzPlan(f *testing.F) {
	f.Add(wire(f, ret(testJID, "m1")))
	f.Add(wire(f, ret("req", "m1")))
	f.Add(wire(f, ret(testJID, "m1", "fun", "state.sls", "retcode", 2, "return", highstate())))
	f.Add(wire(f, dict{"cmd", "_syndic_return", "id", "s", "jid", testJID, "return", dict{"a", dict{"return", 1}}}))
	c, _ := newCache(f, stockOptions())
	f.Fuzz(func(t *testing.T, load []byte) {
		p, err := c.Plan(load, jobcache.Facts{Received: time.Unix(1, 0), JID: testJID})
		if err != nil {
			return
		}
		for _, j := range p.Jobs {
			if j.JID == "" || strings.ContainsAny(j.Minion, "/\x00") {
				t.Fatalf("job %+v", j)
			}
		}
	})
}

// TestModes: every file and directory has the mode that a master with that umask would give it, whatever this process's
// own is; what takes another file's place keeps its mode. What the master would make when it starts does not go by its
// umask.
func TestModes(t *testing.T) {
	for _, own := range []int{0o022, 0o077, 0} {
		for _, mask := range []uint32{0o022, 0o077, 0o027, 0o002, 0} {
			t.Run(fmt.Sprintf("%03o under %03o", mask, own), func(t *testing.T) { testModes(t, own, mask) })
		}
	}
}

func testModes(t *testing.T, own int, mask uint32) {
	dir := t.TempDir()
	defer syscall.Umask(syscall.Umask(own))
	o := stockOptions()
	o["verify_env"], o["job_cache_store_endtime"] = true, true
	c, err := jobcache.New(jobcache.Config{
		Options: o, Version: localmaster.Version{Major: 3008}, CacheDir: dir, UID: -1, GID: -1,
		Keys:  &testKeys{ids: []string{"m1", "m2"}},
		Umask: func() uint32 { return mask },
	})
	require.NoError(t, err)
	defer c.Close()
	apply(t, c, ret(testJID, "m1", "out", "txt"))
	job := jobDir(t, dir)
	require.NoError(t, os.Chmod(filepath.Join(job, ".minions.p"), 0o640))
	apply(t, c, dict{"cmd", "_syndic_return", "load", list{dict{"id", "syndic1", "jid", testJID, "fun", "test.ping",
		"load", dict{"fun", "test.ping", "jid", testJID, "tgt", "m1,m2", "tgt_type", "list", "user", "root", "arg", list{}},
		"return", dict{"m2", dict{"return", true, "retcode", 0, "success", true}}}}, "id", "syndic1", "nonce", "n"})
	file, made := fs.FileMode(0o666&^mask), fs.FileMode(0o777&^mask)
	for name, want := range map[string]fs.FileMode{
		".": made, "..": made, "../..": 0o755, "jid": file, ".load.p": file, ".minions.p": 0o640, "endtime": file, "m1": made,
		"m1/return.p": file, "m1/out.p": file, "m2": made, "m2/return.p": file, "../../../syndics": 0o755,
		"../../../syndics/syndic1": file,
	} {
		info, err := os.Stat(filepath.Join(job, name))
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != want {
			t.Errorf("%s: %v, want %v", name, info.Mode().Perm(), want)
		}
	}
	if got, ok := jobcache.Umask(dir, "sha256", testJID); !ok || got != mask {
		t.Errorf("the job's directory says %03o, %v", got, ok)
	}
	if _, ok := jobcache.Umask(dir, "sha256", testJID[:19]+"3"); ok {
		t.Error("a job that is not there says something")
	}
}
