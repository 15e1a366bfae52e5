package daemon

import (
	"testing"

	"saltclusterd/fsync/jobs"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
)

// What files a return ahead and what carries it to other nodes must not import each other, and mean the same file.
func TestAheadFile(t *testing.T) {
	if jobs.AheadFile != jobcache.AheadFile {
		t.Errorf("%q and %q", jobs.AheadFile, jobcache.AheadFile)
	}
}

// A master without returns keeps what it publishes all the same, and its runners tell of it (salt/master.py _prep_pub).
func TestWhoseJobsAreCarried(t *testing.T) {
	for conf, carried := range map[string]bool{
		"":                          true,
		"job_cache: False\n":        true,
		"ext_job_cache: mysql\n":    false,
		"master_job_cache: mysql\n": false,
		"hash_type: blake2b\n":      false,
		"job_cache: False\next_job_cache: mysql\n": false,
	} {
		for _, major := range []int{3006, 3007, 3008} {
			if off := jobsOfMaster(loadMaster(t, major, conf), localmaster.Owner{}, nil).Off(); (off == "") != carried {
				t.Errorf("%d with %q: %q", major, conf, off)
			}
		}
	}
}
