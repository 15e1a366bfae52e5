package state

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
)

// drawer makes commands that often fit and often just do not: few names, and
// revisions that hold, held once or never did.
type drawer struct {
	t *rapid.T
	s *State
}

func (g drawer) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(g.t, label)
}

func (g drawer) audit() Audit {
	return Audit{By: "m1", At: rapid.Int64Range(0, 50).Draw(g.t, "at"), Cause: g.pick("cause", "", "salt-key")}
}

func (g drawer) rev(label string, right uint64) uint64 {
	switch rapid.IntRange(0, 3).Draw(g.t, label+" kind") {
	case 0:
		return 0
	case 1:
		return rapid.Uint64Range(0, g.s.View().Rev()+2).Draw(g.t, label)
	}
	return right
}

func (g drawer) toCommand() Command {
	v := g.s.View()
	switch rapid.IntRange(0, 20).Draw(g.t, "command") {
	case 0:
		return MemberAdd{ID: g.member(), Addr: g.addr(), Fingerprint: testFP(g.pick("fp", "a", "b", "c")[0]),
			Weight: rapid.IntRange(0, 3).Draw(g.t, "weight"), NonVoter: rapid.Bool().Draw(g.t, "nv"), Audit: g.audit()}
	case 1:
		return MemberRemove{ID: g.member(), Audit: g.audit()}
	case 2:
		return MemberSet{ID: g.member(), Addr: ptr(g.addr()), Draining: ptr(rapid.Bool().Draw(g.t, "drain")),
			NonVoter: ptr(rapid.Bool().Draw(g.t, "nv"))}
	case 3:
		return TombstonesPrune{UpToRev: g.rev("upto", v.Rev()), Before: rapid.Int64Range(0, 60).Draw(g.t, "before"),
			Keep: rapid.IntRange(0, 3).Draw(g.t, "keep")}
	case 4:
		return DeniedSet{ID: g.id(), Pub: g.pick("pub", "P", "Q"), Audit: g.audit()}
	case 5:
		return DeniedClear{ID: g.id(), Pub: g.pick("pub", "", "P")}
	case 6:
		return EpochRotate{Expect: g.rev("expect", v.Epochs().Current.N), Key: testEpochKey(g.pick("key", "A", "B", "C")[0])}
	case 7:
		return GossipKeyAdd{Expect: rapid.Uint64Range(0, 5).Draw(g.t, "expect"),
			Key: SecretText(strings.Repeat(g.pick("key", "g", "h", "i", "j"), 16))}
	case 9:
		head, _ := v.RootsHead()
		return RootsPropose{Parent: g.rev("parent", head.Number), Author: g.member(),
			Root: testFP(g.pick("root", "a", "b", "c")[0]),
			Held: rapid.Bool().Draw(g.t, "held"), Audit: g.audit()}
	case 10:
		return RootsConfirm{Number: rapid.Uint64Range(0, 9).Draw(g.t, "number"), Audit: g.audit()}
	case 11:
		return RootsDrop{Number: rapid.Uint64Range(0, 9).Draw(g.t, "number")}
	case 12:
		return LevelSet{Level: uint16(rapid.IntRange(0, Level).Draw(g.t, "level")), Audit: g.audit()}
	case 15:
		return TokenAdd{ID: g.token(), Public: testPublic('1'), Expires: rapid.Int64Range(0, 60).Draw(g.t, "expires"),
			For: node.ID(g.pick("for", "", "", "m2")), Audit: g.audit()}
	case 16:
		return TokenDrop{ID: g.token()}
	case 17, 18:
		return JoinAdmit{Member: MemberAdd{ID: g.member(), Addr: g.addr(),
			Fingerprint: testFP(g.pick("fp", "a", "b", "c")[0]), Weight: 1},
			Token: g.pick("token", "", "tokenone", "tokentwo"), Secret: rapid.Uint64Range(0, 2).Draw(g.t,
				"secret"), Audit: g.audit()}
	case 19:
		return JoinSecretSet{Expect: g.rev("expect", v.JoinSecrets().Current.N),
			Key:  testJoinSecret(g.pick("key", "x", "y")[0]),
			Keep: rapid.Bool().Draw(g.t, "keep")}
	case 20:
		return JoinSecretDrop{N: rapid.Uint64Range(0, 4).Draw(g.t, "n")}
	case 13:
		return IdentityStage{Expect: g.pick("expect", v.Identity().IdentityFP, "x"), FP: g.pick("fp", "x", "y"), Public: "P",
			Sealed: []byte{1}, Former: []byte{2}, Audit: g.audit()}
	case 14:
		if rapid.Bool().Draw(g.t, "switch") {
			return IdentitySwitch{FP: g.pick("fp", "x", "y"), Audit: g.audit()}
		}
		return IdentityDrop{FP: g.pick("fp", "x", "y"), Stage: IdentityStep(g.pick("stage", "staged", "switched"))}
	case 8:
		return GossipKeyDrop{N: rapid.Uint64Range(0, 5).Draw(g.t, "n")}
	}
	id := g.id()
	return KeySet{ID: id, State: KeyState(g.pick("state", "", "", "pending", "accepted", "rejected", "nonsense")),
		Pub:     g.pick("pub", "", "P", "Q"),
		BaseRev: g.rev("base", v.KeyRev(id)), SeenRev: g.rev("seen", v.Rev()), Audit: g.audit()}
}

func (g drawer) id() string      { return g.pick("id", "a", "b", "c", "../bad") }
func (g drawer) token() string   { return g.pick("token", "tokenone", "tokentwo", "BAD") }
func (g drawer) member() node.ID { return node.ID(g.pick("member", "m1", "m2", "m3", "BAD")) }
func (g drawer) addr() string    { return g.pick("addr", "h:1", "h:2", "h:3", "bad") }

func (g drawer) entry(n int) Entry {
	var e Entry
	for range rapid.IntRange(1, 3).Draw(g.t, "requests") {
		r := Request{ID: g.pick("request id", "", "r1", "r2", "r3", "r4", "r5"), Retry: rapid.Bool().Draw(g.t, "retry")}
		for range rapid.IntRange(1, 3).Draw(g.t, "commands") {
			r.Commands = append(r.Commands, g.toCommand())
		}
		e.Requests = append(e.Requests, r)
	}
	return e
}

func bornRapid(t *rapid.T) *State {
	s := New()
	if r := s.ApplyCommands(testInit())[0]; r.Code != OK {
		t.Fatalf("%+v", r)
	}
	return s
}

// Replicas that get the same log are equal, also when one got it through the
// codec and one was restored from a snapshot on the way.
func TestReplicasAreEqual(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := bornRapid(rt), bornRapid(rt)
		n := rapid.IntRange(1, 25).Draw(rt, "entries")
		for i := range n {
			e := drawer{rt, a}.entry(i)
			index := uint64(i + 2)
			bytes, err := EncodeEntry(e)
			require.NoError(rt, err)
			decoded, err := DecodeEntry(bytes)
			require.NoError(rt, err)
			ra, rb := a.Apply(index, e), b.Apply(index, decoded)
			for j := range ra {
				for k := range ra[j] {
					if ra[j][k] != rb[j][k] {
						rt.Fatalf("results differ: %+v, %+v", ra[j][k], rb[j][k])
					}
				}
			}
			if rapid.IntRange(0, 4).Draw(rt, "restore") == 0 {
				c, err := ReadSnapshot(strings.NewReader(dump(t, b.View())))
				if err != nil {
					rt.Fatalf("%v\n%s", err, dump(t, b.View()))
				}
				b.Replace(c)
			}
		}
		if da, db := dump(t, a.View()), dump(t, b.View()); da != db {
			rt.Fatalf("replicas differ\n%s\n%s", da, db)
		}
		check(t, a)
	})
}

// A key that was deleted comes back only by a proposal whose author knew of the
// deletion; a proposal with an old base changes nothing; revisions only grow.
func TestStaleProposalsNeverResurrect(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := bornRapid(rt)
		deleted := map[string]uint64{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			c := drawer{rt, s}.toCommand()
			before := s.View()
			r := s.ApplyCommands(c)[0]
			after := s.View()
			if after.Rev() < before.Rev() || (r.Code != OK && after.Rev() != before.Rev()) {
				rt.Fatalf("%s: %+v: revision %d → %d", c.Type(), r, before.Rev(), after.Rev())
			}
			ks, ok := c.(KeySet)
			if !ok || r.Code != OK {
				continue
			}
			_, existed := before.Key(ks.ID)
			_, exists := after.Key(ks.ID)
			if exists != (ks.State != KeyDeleted) {
				rt.Fatalf("%+v: exists %v", ks, exists)
			}
			if existed && ks.BaseRev != before.KeyRev(ks.ID) {
				rt.Fatalf("%+v changed a key at revision %d", ks, before.KeyRev(ks.ID))
			}
			if last := deleted[ks.ID]; !existed && exists && ks.BaseRev != last && ks.SeenRev < last {
				rt.Fatalf("%+v brought back what was deleted at %d", ks, last)
			}
			if !exists {
				deleted[ks.ID] = r.Rev
			}
		}
		check(t, s)
	})
}
