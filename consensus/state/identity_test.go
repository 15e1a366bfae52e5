package state

import (
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

func identityCommands() []Command {
	a := Audit{By: "m1", At: 5, Cause: "test"}
	return []Command{
		IdentityStage{Expect: "fp", FP: "fp2", Public: "PUBLIC", Sealed: []byte("\x00\xffsealed"), Former: []byte("x"),
			Audit: a},
		IdentitySwitch{FP: "fp2", Audit: a},
		IdentityDrop{FP: "fp2", Stage: IdentitySwitched, Audit: a},
	}
}

// A change of the identity goes its steps in their order, each of them once, whoever asks how often.
func TestIdentityChange(t *testing.T) {
	s := born(t)
	first := s.View().Identity().IdentityFP
	stage := func(expect, fp string) Command {
		return IdentityStage{Expect: expect, FP: fp, Public: "P", Sealed: []byte("x"), Former: []byte("y"),
			Audit: Audit{By: "m1"}}
	}
	for _, step := range []struct {
		name  string
		cmd   Command
		code  Code
		stage IdentityStep
		force string
	}{
		{"switch of nothing", IdentitySwitch{FP: "two"}, Conflict, NoIdentity, first},
		{"drop of nothing", IdentityDrop{FP: "two", Stage: IdentityStaged}, Conflict, NoIdentity, first},
		{"no stage", IdentityDrop{FP: "two"}, Invalid, NoIdentity, first},
		{"nothing sealed", IdentityStage{Expect: first, FP: "two", Public: "P", Former: []byte("y")}, Invalid, NoIdentity,
			first},
		{"sealed too large", IdentityStage{Expect: first, FP: "two", Public: "P", Sealed: make([]byte, MaxSealedIdentity+1),
			Former: []byte("y")}, Invalid, NoIdentity, first},
		{"for another identity", stage("two", "three"), Conflict, NoIdentity, first},
		{"the same", stage(first, first), Invalid, NoIdentity, first},
		{"staged", stage(first, "two"), OK, IdentityStaged, first},
		{"staged again", stage(first, "three"), Conflict, IdentityStaged, first},
		{"another one switched", IdentitySwitch{FP: "three"}, Conflict, IdentityStaged, first},
		{"finished too early", IdentityDrop{FP: "two", Stage: IdentitySwitched}, Conflict, IdentityStaged, first},
		{"given up", IdentityDrop{FP: "two", Stage: IdentityStaged}, OK, NoIdentity, first},
		{"staged once more", stage(first, "two"), OK, IdentityStaged, first},
		{"switched", IdentitySwitch{FP: "two"}, OK, IdentitySwitched, "two"},
		{"switched again", IdentitySwitch{FP: "two"}, OK, IdentitySwitched, "two"},
		{"given up too late", IdentityDrop{FP: "two", Stage: IdentityStaged}, Conflict, IdentitySwitched, "two"},
		{"another before the end", stage("two", "three"), Conflict, IdentitySwitched, "two"},
		{"finished", IdentityDrop{FP: "two", Stage: IdentitySwitched}, OK, NoIdentity, "two"},
		{"and another", stage("two", "three"), OK, IdentityStaged, "two"},
	} {
		r := s.ApplyCommands(step.cmd)[0]
		v := s.View()
		if r.Code != step.code || v.IdentityChange().Stage != step.stage || v.Identity().IdentityFP != step.force {
			t.Errorf("%s: %+v, %q, %s in force", step.name, r, v.IdentityChange().Stage, v.Identity().IdentityFP)
		}
		check(t, s)
		got, err := ReadSnapshot(strings.NewReader(dump(t, v)))
		if err != nil || dump(t, got.View()) != dump(t, v) {
			t.Errorf("%s: after a snapshot: %v", step.name, err)
		}
	}
	torn := strings.Replace(dump(t, s.View()), `"former":"two"`, `"former":"one"`, 1)
	if _, err := ReadSnapshot(strings.NewReader(torn)); err == nil {
		t.Error("a snapshot with a change of another identity is read")
	}
}

// What was written of it first must be read for ever, and mean the same.
func TestFixtures_IdentityChange(t *testing.T) {
	s := born(t)
	s.ApplyCommands(IdentityStage{Expect: s.View().Identity().IdentityFP, FP: "two", Public: "P<>\n",
		Sealed: []byte("\x00\xff"), Former: []byte{1}, Audit: Audit{By: "m1", At: 3}},
		IdentitySwitch{FP: "two", Audit: Audit{By: "m2", At: 4, Cause: "rotate"}})
	got, err := ReadSnapshot(strings.NewReader(fixture(t, "testdata/v1/identity_snapshot.jsonl", dump(t, s.View()))))
	if err != nil || dump(t, got.View()) != dump(t, s.View()) {
		t.Fatalf("the snapshot means something else today: %v", err)
	}
	b, err := EncodeEntry(Entry{Requests: []Request{{ID: "m1/1", Since: 3, Commands: identityCommands()}}})
	require.NoError(t, err)
	e, err := DecodeEntry([]byte(fixture(t, "testdata/v1/identity_entry.json", string(b))))
	require.NoError(t, err)
	if again, err := EncodeEntry(e); err != nil || string(again) != string(b) {
		t.Errorf("the entry means something else today: %v", err)
	}
}
