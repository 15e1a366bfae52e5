package replication

import (
	"testing"

	"saltclusterd/fsync/jobs"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/configtest"
)

// The engine that files a return ahead and the one that replicates it mean the same file, and do not import each other.
func TestAheadFile(t *testing.T) {
	if jobs.AheadFile != jobcache.AheadFile {
		t.Errorf("%q and %q", jobs.AheadFile, jobcache.AheadFile)
	}
}

// A master without returns still keeps what it publishes, which its runners show (salt/master.py _prep_pub).
func TestJobsMaster(t *testing.T) {
	for conf, replicated := range map[string]bool{
		"":                          true,
		"job_cache: False\n":        true,
		"ext_job_cache: mysql\n":    false,
		"master_job_cache: mysql\n": false,
		"hash_type: blake2b\n":      false,
		"job_cache: False\next_job_cache: mysql\n": false,
	} {
		for _, major := range []int{3006, 3007, 3008} {
			if off := jobsMaster(configtest.Load(t, major, conf), localmaster.Owner{}, nil).Off(); (off == "") != replicated {
				t.Errorf("%d with %q: %q", major, conf, off)
			}
		}
	}
}
