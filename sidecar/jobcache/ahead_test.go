package jobcache_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
)

// What is there ahead of its publisher is whole for who reads the job cache, and was taken by nobody, until somebody
// does.
func TestAhead(t *testing.T) {
	dir := t.TempDir()
	var told []jobcache.Job
	c, err := jobcache.New(jobcache.Config{
		Options: stockOptions(), Version: localmaster.Version{Major: 3008}, CacheDir: dir, UID: -1, GID: -1,
		Keys:   &testKeys{ids: []string{"m1", "m2"}},
		Stored: func(j *jobcache.Job) { told = append(told, *j) },
	})
	require.NoError(t, err)
	defer c.Close()
	apply(t, c, ret(testJID, "m2"))
	ahead := func(load dict) {
		t.Helper()
		p := plan(t, c, load)
		p.Jobs[0].Ahead = true
		require.NoError(t, c.Apply(context.Background(), p))
	}
	taken := func(id string, want bool) {
		t.Helper()
		if c.Has(testJID, id) != want || jobcache.Stored(dir, "sha256", testJID, id) != want {
			t.Errorf("%s is taken: %v, not %v", id, !want, want)
		}
	}
	job := jobDir(t, dir)
	mark := filepath.Join(job, "m1", jobcache.AheadFile)

	mkdir(t, filepath.Join(job, "m1")) // what a kill has left is completed
	ahead(ret(testJID, "m1", "return", "one", "out", "txt"))
	ahead(ret(testJID, "m1", "return", "another"))
	ahead(ret(testJID, "m2"))
	taken("m1", false)
	taken("m2", true)
	told = nil
	apply(t, c, ret(testJID, "m1", "return", "another"))
	taken("m1", true)
	if len(told) != 1 || told[0].Minion != "m1" || told[0].Ahead || !strings.Contains(string(told[0].Return), "one") ||
		told[0].Out == nil {
		t.Errorf("told of %+v", told)
	}
	apply(t, c, ret(testJID, "m1", "return", "another"))
	if len(told) != 1 {
		t.Errorf("told of %+v", told[1:])
	}
	if got := read(t, filepath.Join(job, "m1/return.p")); !strings.Contains(got, "one") {
		t.Errorf("return.p is %q", got)
	}
	if _, err := os.Stat(mark); !os.IsNotExist(err) {
		t.Errorf("the mark: %v", err)
	}

	// A master that gets it all the same would drop it as a second return.
	mend := func(want bool, age time.Duration) {
		t.Helper()
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(filepath.Dir(mark), at, at))
		if removed, err := jobcache.Mend(dir, "sha256", testJID, "m1"); removed != want || err != nil {
			t.Errorf("removed: %v (%v)", removed, err)
		}
	}
	mend(false, time.Minute)
	require.NoError(t, os.WriteFile(mark, nil, 0o644))
	mend(true, 0)
	mkdir(t, filepath.Dir(mark)) // the master is about to write it
	require.NoError(t, os.WriteFile(mark, nil, 0o644))
	mend(false, -time.Second)
	mend(true, time.Minute)
	ahead(ret(testJID, "m1"))
	taken("m1", false)
	if left, _ := filepath.Glob(filepath.Join(job, ".saltcluster-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
