package rootsadmin

import (
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// A node without hints of the kernel reports that, unless it replicates nothing.
func TestNodeRow_NoHints(t *testing.T) {
	looked := roots.Status{LastScan: time.Now()}
	watched := looked
	watched.Watching = true
	notes := func(r report) []string {
		return nodeRow("m1", peerrpc.Answers[report]{Of: map[node.ID]report{"m1": r}}, 7).Notes
	}
	for want, r := range map[int]report{
		0: {Status: watched}, 1: {Status: looked}, 2: {Notes: []string{"gitfs"}, Status: looked},
	} {
		if got := notes(r); len(got) != want {
			t.Errorf("%q", got)
		}
	}
	if got := notes(report{Off: "off", Status: looked}); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestRevisionText(t *testing.T) {
	m1 := adminapi.RootsApplied{Node: "m1", Applied: true}
	off := adminapi.RootsApplied{Node: "m3", Skipped: "cluster_roots_sync is off"}
	for want, nodes := range map[string][]adminapi.RootsApplied{
		"revision 7 is on all nodes": {m1}, "revision 7 is on all nodes but m3": {m1, off},
	} {
		if got := revisionText(7, nodes); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
