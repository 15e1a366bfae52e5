package daemon

import "testing"

func TestDrainReportText(t *testing.T) {
	for _, tc := range []struct {
		r    drainReport
		want string
	}{
		{drainReport{Phase: "handing-over"}, "m2: handing-over; 0 subscribers, 0 request connections left, 0 requests in flight"},
		{drainReport{Phase: "closing", Subscribers: 1, Connections: 1, InFlight: 1, Jobs: 1, Kept: 1, Deferred: 1, Aside: 1, Leader: true},
			"m2: closing; 1 subscriber, 1 request connection left, 1 request in flight, 1 job published here is running, 1 return kept for other nodes, " +
				"1 return waits for its salt-master, 1 return that its salt-master does not answer stays in state_dir/returns/unanswered, it leads"},
		{drainReport{Phase: "closing", Subscribers: 2, Jobs: 2, Deferred: 2},
			"m2: closing; 2 subscribers, 0 request connections left, 0 requests in flight, 2 jobs published here are running, 2 returns wait for its salt-master"},
	} {
		if got := tc.r.text("m2"); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

func TestEnumerate(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "m1": {"m1"}, "m1 and m2": {"m1", "m2"}, "m1, m2 and m3": {"m1", "m2", "m3"}} {
		if got := enumerate(names); got != want {
			t.Errorf("%v: %q", names, got)
		}
	}
}
