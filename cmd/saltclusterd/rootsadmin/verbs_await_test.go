package rootsadmin

import (
	"errors"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
)

func TestAppliedRow(t *testing.T) {
	salt, spm := roots.SlotName{Kind: "file", Env: "base"}, roots.SlotName{Kind: "file", Env: "base", Pos: 1}
	at := func(base uint64, slots ...roots.SlotStatus) report {
		return report{Status: roots.Status{
			Base: base, Head: 7, Slots: slots, LastSwitch: &roots.Switch{Revision: 7, Installed: 3, Removed: 1},
		}}
	}
	fine := roots.SlotStatus{Name: salt, Dir: "/srv/salt", Files: 9}
	reports := peerrpc.Answers[report]{
		Of: map[node.ID]report{
			"m1": at(7, fine, roots.SlotStatus{Name: spm, Dir: "/srv/spm/salt", Unavailable: "missing"}),
			"m2": at(8, roots.SlotStatus{Name: salt, Dir: "/srv/salt", Unavailable: "not mounted"}),
			"m3": at(6, fine),
			"m5": {Off: "cluster_roots_sync is off"},
			"m6": {Off: starting},
		},
		Failed: map[node.ID]error{"m4": errors.New("connection refused")},
	}
	used := slotsInUse(reports)
	for id, want := range map[node.ID]struct {
		applied bool
		err     string
	}{
		"m1": {true, ""}, "m2": {true, "not mounted"}, "m3": {false, "revision 7 after 6"},
		"m4": {false, "connection refused"}, "m5": {false, ""}, "m6": {false, "revision"},
	} {
		row, text := appliedRow(id, reports, 7, used)
		if row.Applied != want.applied || (row.Error == "") != (want.err == "") ||
			!strings.Contains(row.Error, want.err) || text == "" {
			t.Errorf("%s: %+v, %q", id, row, text)
		}
		if id == "m1" && (row.Installed != 3 || row.Removed != 1) {
			t.Errorf("m1: %+v", row)
		}
		if (row.Skipped != "") != (id == "m5") {
			t.Errorf("%s is left out: %q", id, row.Skipped)
		}
	}
}
