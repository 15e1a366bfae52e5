package state

import (
	"strings"
	"testing"
)

func survivor(id string) Recovery {
	m := testInit().Founder
	m.ID = "m2"
	return Recovery{Survivor: m, GossipKey: SecretText(strings.Repeat(id, 32))}
}

// Recover drops all other members and keeps everything else.
func TestRecover_Survivor(t *testing.T) {
	s := born(t)
	for _, r := range s.ApplyCommands(
		MemberAdd{ID: "m2", Addr: "h2:4520", Fingerprint: testFP('2'), Weight: 100},
		KeySet{ID: "minion", State: KeyAccepted, Pub: "P"},
	) {
		if r.Code != OK {
			t.Fatalf("%+v", r)
		}
	}
	before := s.View()
	if err := s.Recover(survivor("n")); err != nil {
		t.Fatal(err)
	}
	v := s.View()
	if m := v.Members(); len(m) != 1 || m[0].ID != "m2" || m[0].NonVoter {
		t.Errorf("members %+v", m)
	}
	if v.Index() != before.Index() || v.Rev() <= before.Rev() || v.Generation() != 1 || v.GossipDue() {
		t.Errorf("index %d rev %d generation %d, gossip due %v", v.Index(), v.Rev(), v.Generation(), v.GossipDue())
	}
	if k, ok := v.Key("minion"); !ok || k.State != KeyAccepted || v.Identity() != before.Identity() ||
		v.Epochs() != before.Epochs() {
		t.Error("keys, identity or epoch changed")
	}
	again, err := ReadSnapshot(strings.NewReader(dump(t, v)))
	if err != nil {
		t.Fatal(err)
	}
	if dump(t, again.View()) != dump(t, v) || again.View().Generation() != 1 {
		t.Error("a snapshot loses what was recovered")
	}
}

func TestRecoverRefuses(t *testing.T) {
	bad := survivor("n")
	bad.Survivor.Fingerprint = "x"
	witness := survivor("n")
	witness.Survivor.Witness = true
	for name, tc := range map[string]struct {
		s *State
		r Recovery
	}{
		"no cluster": {New(), survivor("n")}, "bad member": {born(t), bad}, "witness": {born(t), witness},
		"short gossip key": {born(t), Recovery{Survivor: survivor("n").Survivor, GossipKey: SecretText("x")}},
	} {
		before := tc.s.View()
		if err := tc.s.Recover(tc.r); err == nil || tc.s.View() != before {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGossipDueAfterARemoval(t *testing.T) {
	s := born(t)
	s.ApplyCommands(MemberAdd{ID: "m2", Addr: "h2:4520", Fingerprint: testFP('2'), Weight: 100})
	if s.View().GossipDue() {
		t.Error("due before anything was removed")
	}
	s.ApplyCommands(MemberRemove{ID: "m2"})
	again, err := ReadSnapshot(strings.NewReader(dump(t, s.View())))
	if err != nil {
		t.Fatal(err)
	}
	if !s.View().GossipDue() || !again.View().GossipDue() {
		t.Error("not due after a removal")
	}
	s.ApplyCommands(GossipKeyAdd{Expect: 1, Key: SecretText(strings.Repeat("n", 32))})
	if s.View().GossipDue() {
		t.Error("due after the key changed")
	}
}
