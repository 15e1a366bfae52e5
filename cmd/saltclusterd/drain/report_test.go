package drain

import (
	"testing"

	"saltclusterd/fsync/jobs"
)

// TestCountUncopied checks that a node that is to be removed does not wait for members that cannot be reached.
func TestCountUncopied(t *testing.T) {
	st := jobs.Status{Peers: []jobs.PeerStatus{
		{ID: "b", Waiting: 2, Dirty: 1}, {ID: "c", Off: true, Waiting: 5}, {ID: "d", Err: "gone", Dirty: 7},
	}}
	if n := countUncopied(st); n != 3 {
		t.Errorf("%d to be copied, want 3", n)
	}
	for _, p := range []jobs.PeerStatus{{All: true}, {Busy: true}} {
		if n := countUncopied(jobs.Status{Peers: []jobs.PeerStatus{p}}); n != 1 {
			t.Errorf("%+v: %d to be copied", p, n)
		}
	}
	if n := countUncopied(jobs.Status{}); n != 0 {
		t.Errorf("%d to be copied without peers", n)
	}
}

func TestReport_Sentence(t *testing.T) {
	for _, tc := range []struct {
		r    Report
		want string
	}{
		{
			Report{Phase: "handing-over"},
			"m2: handing-over; 0 subscribers, 0 request connections left, 0 requests in flight",
		},
		{
			Report{
				Phase: "closing", Subscribers: 1, Connections: 1, InFlight: 1, Jobs: 1, Kept: 1, Deferred: 1, Unstored: 1, Aside: 1,
				Leader: true,
			},
			"m2: closing; 1 subscriber, 1 request connection left, 1 request in flight, 1 job published here is running, " +
				"1 return kept for other nodes, 1 return waits for its salt-master, 1 return to be stored or copied, " +
				"1 return that its salt-master does not answer stays in state_dir/returns/unanswered, it leads",
		},
		{
			Report{Phase: "closing", Subscribers: 2, Jobs: 2, Deferred: 2, Aside: 2},
			"m2: closing; 2 subscribers, 0 request connections left, 0 requests in flight, 2 jobs published here are running, " +
				"2 returns wait for its salt-master, " +
				"2 returns that its salt-master does not answer stay in state_dir/returns/unanswered",
		},
	} {
		if got := tc.r.sentence("m2"); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}
