package daemon

import (
	"testing"

	"saltclusterd/fsync/jobs"
)

// TestUncopied checks what a node that is to be removed waits for: not for members that cannot be reached.
func TestUncopied(t *testing.T) {
	st := jobs.Status{Peers: []jobs.PeerStatus{
		{ID: "b", Waiting: 2, Dirty: 1}, {ID: "c", Off: true, Waiting: 5}, {ID: "d", Err: "gone", Dirty: 7},
	}}
	if n := uncopied(st); n != 3 {
		t.Errorf("%d to be copied, want 3", n)
	}
	if n := uncopied(jobs.Status{}); n != 0 {
		t.Errorf("%d to be copied to nobody", n)
	}
}
