package native

import (
	"strings"
	"testing"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/ring"
	"saltclusterd/sidecar/router"
)

// fakeLog is a consensus log with the members m1 and m2.
type fakeLog struct {
	*state.State
	caughtUp bool
}

func (l fakeLog) CaughtUp() bool { return l.caughtUp }

func newLog(t *testing.T) fakeLog {
	t.Helper()
	s := state.New()
	for _, r := range s.ApplyCommands(
		state.Init{
			Identity:    state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
			Founder:     state.Member{ID: "m1", Addr: "10.0.0.1:4520", Fingerprint: strings.Repeat("a", 64), Weight: 100},
			EpochKey:    state.SecretText(strings.Repeat("QUFB", 18) + "QUE="),
			GossipKey:   state.SecretText(strings.Repeat("g", 32)),
			SessionSeed: state.SecretText(strings.Repeat("s", 32)),
		},
		state.MemberAdd{ID: "m2", Addr: "10.0.0.2:4520", Fingerprint: strings.Repeat("b", 64), Weight: 100},
	) {
		if r.Code == state.Invalid {
			t.Fatal(r.Err())
		}
	}
	return fakeLog{s, true}
}

// A node that does not know the roster for certain counts no member as removed.
func TestPeers_Standing(t *testing.T) {
	log := newLog(t)
	p := NewPeers(PeersConfig{Self: "m1", Log: log, Reachable: func(id node.ID) bool { return id == "m1" }})
	for id, want := range map[node.ID]returns.Standing{
		"m1": returns.Reachable, "m2": returns.Unreachable, "m3": returns.Removed,
	} {
		check.Equal(t, p.Standing(id), want, id)
	}
	for name, c := range map[string]PeersConfig{
		"behind":   {Self: "m1", Log: fakeLog{log.State, false}},
		"not born": {Self: "m1", Log: fakeLog{state.New(), true}},
		"stranger": {Self: "m4", Log: log},
	} {
		check.Equal(t, NewPeers(c).Standing("m3"), returns.Unknown, name)
	}
}

// The nodes whose masters answer come before those that take returns without one.
func TestPeers_OwnerAndSuccessor(t *testing.T) {
	up := func(id node.ID) router.Node {
		return router.Node{ID: id, Weight: 100, Alive: true, MasterUp: true, TakesReturns: true}
	}
	native := func(id node.ID) router.Node {
		return router.Node{ID: id, Weight: 100, Alive: true, TakesReturns: true}
	}
	down := func(id node.ID) router.Node { return router.Node{ID: id, Weight: 100} }
	for name, c := range map[string]struct {
		nodes            []router.Node
		owner, successor node.ID
	}{
		"one master":           {[]router.Node{native("m1"), up("m2"), native("m3")}, "m2", "m2"},
		"its own":              {[]router.Node{up("m1"), native("m2"), down("m3")}, "m1", "m2"},
		"no master":            {[]router.Node{down("m1"), native("m2"), down("m3")}, "m2", "m2"},
		"no node":              {[]router.Node{down("m1"), down("m2")}, "", ""},
		"alone without master": {[]router.Node{native("m1")}, "m1", ""},
	} {
		p := NewPeers(PeersConfig{Self: "m1", Routes: func() router.View { return router.View{Self: "m1", Nodes: c.nodes} }})
		if owner, ok := p.Owner("20261121040506000001"); owner != c.owner || ok != (c.owner != "") {
			t.Errorf("%s: the owner is %q", name, owner)
		}
		if next, ok := p.Successor("20261121040506000001"); next != c.successor || ok != (c.successor != "") {
			t.Errorf("%s: the successor is %q", name, next)
		}
	}
}

func TestPeers_Copiers(t *testing.T) {
	nodes := []router.Node{
		{ID: "m1", Alive: true, TakesReturns: true}, {ID: "m2", Alive: true, TakesReturns: true},
		{ID: "m3", Alive: true}, {ID: "m4", TakesReturns: true}, {ID: "m5", Alive: true, TakesReturns: true},
	}
	p := NewPeers(PeersConfig{
		Self: "m2", Routes: func() router.View { return router.View{Nodes: nodes} },
		Replicas: func(string) []node.ID { return []node.ID{"m1", "m2", "m3", "m4"} },
	})
	check.EqualSlices(t, p.Copiers("20261121040506000001"), []node.ID{"m2", "m1"})
}

// Keepers are the other members that can be reached; there is a next keeper only while this node is drained.
func TestPeers_KeepersAndHeir(t *testing.T) {
	p := NewPeers(PeersConfig{
		Self: "m1", Log: newLog(t), Reachable: func(node.ID) bool { return true },
		Masters: func() []ring.Node {
			return []ring.Node{{ID: "m1", Weight: 100}, {ID: "m2", Weight: 100}, {ID: "m3", Weight: 100}}
		},
	})
	check.EqualSlices(t, p.Keepers("20261121040506000001"), []node.ID{"m2"})
	if keeper, ok := p.NextKeeper("m2"); ok {
		t.Errorf("%s, though this node is not drained", keeper)
	}
}
