package identity

import (
	"testing"

	"saltclusterd/consensus/state"
)

func TestDecideDuty(t *testing.T) {
	t.Parallel()
	staged := state.IdentityChange{Stage: state.IdentityStaged, FP: "new", Former: "old"}
	switched := state.IdentityChange{Stage: state.IdentitySwitched, FP: "new", Former: "old"}
	for _, c := range []struct {
		own, inForce string
		change       state.IdentityChange
		want         duty
	}{
		{"", "old", staged, dutyNone}, // the state is not known yet, or this node's key
		{"old", "", state.IdentityChange{}, dutyNone},
		{"old", "old", state.IdentityChange{}, dutyForget},
		{"old", "old", staged, dutyAnswer},
		{"old", "new", switched, dutyTake},
		{"new", "new", switched, dutyFollow},
		{"new", "new", state.IdentityChange{}, dutyForget},
		{"old", "new", state.IdentityChange{}, dutyMissed}, // finished without it
		{"older", "old", staged, dutyMissed},
		{"older", "new", switched, dutyMissed},
	} {
		if got := decideDuty(c.own, c.inForce, c.change); got != c.want {
			t.Errorf("%s, %s in force, %s: %d, want %d", c.own, c.inForce, c.change.Stage, got, c.want)
		}
	}
}
