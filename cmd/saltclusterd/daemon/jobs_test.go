package daemon

import (
	"testing"

	"saltclusterd/fsync/jobs"
	"saltclusterd/sidecar/jobcache"
)

// What files a return ahead and what carries it to other nodes must not import each other, and mean the same file.
func TestAheadFile(t *testing.T) {
	if jobs.AheadFile != jobcache.AheadFile {
		t.Errorf("%q and %q", jobs.AheadFile, jobcache.AheadFile)
	}
}
