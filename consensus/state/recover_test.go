package state

import (
	"strings"
	"testing"

	"saltclusterd/integration/require"
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
	require.NoError(t, s.Recover(survivor("n")))
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
	require.NoError(t, err)
	if dump(t, again.View()) != dump(t, v) || again.View().Generation() != 1 {
		t.Error("a snapshot loses what was recovered")
	}
}

// A token that was used or revoked after the state was saved lets no node in; who has used one stays known.
func TestRecover_Tokens(t *testing.T) {
	s := born(t)
	m2 := MemberAdd{ID: "m2", Addr: "h:2", Fingerprint: testFP('b'), Weight: 1}
	made := Audit{By: "m1", At: 10}
	for _, c := range []Command{
		TokenAdd{ID: "used", Public: testPublic('1'), Expires: 100, Audit: made},
		TokenAdd{ID: "open", Public: testPublic('2'), Expires: 100, Audit: made},
		TokenAdd{ID: "bound", Public: testPublic('3'), Expires: 100, For: "m3", Audit: made},
		JoinAdmit{Member: m2, Token: "used", Audit: made},
	} {
		if r := s.ApplyCommands(c)[0]; r.Code != OK {
			t.Fatalf("%+v: %+v", c, r)
		}
	}
	var saved strings.Builder
	require.NoError(t, s.View().WriteSnapshot(&saved))
	s.ApplyCommands(TokenDrop{ID: "open", Audit: made}) // which the snapshot does not know
	restored, err := ReadSnapshot(strings.NewReader(saved.String()))
	require.NoError(t, err)
	r := survivor("n")
	r.Survivor.ID = "m1"
	require.NoError(t, restored.Recover(r))
	thief := MemberAdd{ID: "m3", Addr: "h:3", Fingerprint: testFP('c'), Weight: 1}
	for token, want := range map[string]Code{"open": NotFound, "bound": NotFound, "used": Conflict} {
		join := JoinAdmit{Member: thief, Token: token, Audit: Audit{By: "m1", At: 50}}
		if r := restored.ApplyCommands(join)[0]; r.Code != want {
			t.Errorf("a node that joins with the token %s: %+v", token, r)
		}
	}
	if list := restored.View().JoinTokens(); len(list) != 1 || list[0].Used.By != "m2" {
		t.Errorf("tokens %+v", list)
	}
	again, err := ReadSnapshot(strings.NewReader(dump(t, restored.View())))
	if err != nil || dump(t, again.View()) != dump(t, restored.View()) {
		t.Errorf("a snapshot loses what was recovered: %v", err)
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
	require.NoError(t, err)
	if !s.View().GossipDue() || !again.View().GossipDue() {
		t.Error("not due after a removal")
	}
	s.ApplyCommands(GossipKeyAdd{Expect: 1, Key: SecretText(strings.Repeat("n", 32))})
	if s.View().GossipDue() {
		t.Error("due after the key changed")
	}
}
