package operator

import (
	"errors"
	"strings"
	"testing"

	"saltclusterd/sidecar/health"
)

func TestCheckConsensus(t *testing.T) {
	for _, c := range []struct {
		name  string
		in    Consensus
		level health.Level
		text  string // of reason and hint
	}{
		{"all is well", Consensus{HasQuorum: true, CaughtUp: true}, health.OK, ""},
		{"after a takeover", Consensus{TakenOver: true}, health.Warn, "has just taken over"},
		{"removed", Consensus{Detached: true, Rejoin: "join again"}, health.Fail, "was removed from the cluster join again"},
		{"no majority", Consensus{CaughtUp: true}, health.Fail, "key decisions wait start m2"},
		{"its disk does not answer", Consensus{HasQuorum: true, LogError: errors.New("EIO"), StateDir: "/var/lib/x"},
			health.Fail, "cannot store decisions of the cluster: EIO make room in or repair the disk of /var/lib/x"},
		{"its disk takes no vote", Consensus{CaughtUp: true, LogError: errors.New("EIO")}, health.Fail, "cannot store decisions"},
		{"its disk failed once", Consensus{HasQuorum: true, CaughtUp: true, LogError: errors.New("EIO")}, health.OK, ""},
		{"catching up", Consensus{HasQuorum: true}, health.Fail, "is catching up"},
	} {
		c.in.QuorumHint = func() string { return "start m2" }
		if r := CheckConsensus(c.in); r.Level != c.level || !strings.Contains(r.Reason+" "+r.Hint, c.text) {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

func TestCheckMaster(t *testing.T) {
	for _, c := range []struct {
		problem string
		others  bool
		want    health.Level
	}{{"", false, health.OK}, {"start it", true, health.Warn}, {"start it", false, health.Fail}} {
		if r := CheckMaster(c.problem, c.others); r.Level != c.want || r.Hint != c.problem {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}

func TestCheckEdges(t *testing.T) {
	for held, hint := range map[bool]string{true: "restart salt-master", false: "the log says why"} {
		r := CheckEdges("catching up", held)
		if r.Level != health.Fail || !strings.HasSuffix(r.Reason, "catching up") || !strings.Contains(r.Hint, hint) {
			t.Errorf("held %t: %+v", held, r)
		}
	}
}
