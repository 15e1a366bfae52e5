package state

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"saltclusterd/gossip/node"
)

func testEpochKey(c byte) Secret {
	return SecretText(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{c}, 56)))
}

func testFP(c byte) string { return strings.Repeat(string(c), 64) }

func testInit() Init {
	return Init{
		Identity:    Identity{ClusterID: "prod", UUID: "11111111-2222", IdentityFP: "ab:cd"},
		Founder:     Member{ID: "m1", Addr: "10.0.0.1:4520", Fingerprint: testFP('a'), Weight: 100},
		EpochKey:    testEpochKey('A'),
		SessionSeed: SecretText(strings.Repeat("s", 32)),
		GossipKey:   SecretText(strings.Repeat("g", 32)),
		Audit:       Audit{By: "m1", At: 1000, Cause: "bootstrap"},
	}
}

func born(t testing.TB) *State {
	t.Helper()
	s := New()
	if r := s.ApplyCommands(testInit())[0]; r.Code != OK || r.Rev != 1 {
		t.Fatalf("init: %+v", r)
	}
	return s
}

func ptr[T any](v T) *T { return &v }

func TestCommands(t *testing.T) {
	add := MemberAdd{ID: "m2", Addr: "10.0.0.2:4520", Fingerprint: testFP('b'), Weight: 100}
	accept := KeySet{ID: "web1", State: KeyAccepted, Pub: "PEM"}
	steps := []struct {
		name string
		cmd  Command
		code Code
		rev  uint64
	}{
		{"born again, same", testInit(), OK, 0},
		{"born again, other", func() Init { i := testInit(); i.UUID = "other"; return i }(), Conflict, 0},
		{"add", add, OK, 2},
		{"add again", add, OK, 2},
		{"add with another certificate", MemberAdd{ID: "m2", Addr: add.Addr, Fingerprint: testFP('c'), Weight: 1}, Conflict,
			2},
		{"same address", MemberAdd{ID: "m3", Addr: add.Addr, Fingerprint: testFP('c'), Weight: 1}, Conflict, 0},
		{"same certificate", MemberAdd{ID: "m3", Addr: "h:1", Fingerprint: testFP('b'), Weight: 1}, Conflict, 0},
		{"moved", MemberAdd{ID: "m2", Addr: "10.0.0.9:4520", Fingerprint: testFP('b'), Weight: 100}, OK, 3},
		{"set nothing new", MemberSet{ID: "m2", Weight: ptr(100)}, OK, 3},
		{"drain", MemberSet{ID: "m2", Draining: ptr(true)}, OK, 4},
		{"set unknown", MemberSet{ID: "m9", Draining: ptr(true)}, UnknownMember, 0},
		{"weight out of bounds", MemberSet{ID: "m2", Weight: ptr(0)}, Invalid, 0},
		{"no vote", MemberSet{ID: "m2", NonVoter: ptr(true)}, OK, 5},
		{"remove the last voter", MemberRemove{ID: "m1"}, Conflict, 0},
		{"last voter without vote", MemberSet{ID: "m1", NonVoter: ptr(true)}, Conflict, 1},
		{"remove", MemberRemove{ID: "m2"}, OK, 6},
		{"remove again", MemberRemove{ID: "m2"}, UnknownMember, 0},

		{"accept", accept, OK, 7},
		{"accept from the same base", accept, Conflict, 7},
		{"no change", KeySet{ID: "web1", State: KeyAccepted, Pub: "PEM", BaseRev: 7}, OK, 7},
		{"reject, key kept", KeySet{ID: "web1", State: KeyRejected, BaseRev: 7}, OK, 8},
		{"delete, old base", KeySet{ID: "web1", BaseRev: 7}, Conflict, 8},
		{"delete", KeySet{ID: "web1", BaseRev: 8}, OK, 9},
		{"delete again", KeySet{ID: "web1", BaseRev: 9}, NotFound, 9},
		{"resurrect, knowing nothing", accept, Conflict, 9},
		{"resurrect, knowing the key", KeySet{ID: "web1", State: KeyPending, Pub: "PEM", BaseRev: 8}, Conflict, 9},
		{"come back without a key", KeySet{ID: "web1", State: KeyPending, BaseRev: 9}, Invalid, 9},
		{"come back on purpose", KeySet{ID: "web1", State: KeyPending, Pub: "PEM", BaseRev: 9}, OK, 10},
		{"delete unknown", KeySet{ID: "nobody"}, NotFound, 0},
		{"bad id", KeySet{ID: "../x", State: KeyPending, Pub: "PEM"}, Invalid, 0},
		{"bad state", KeySet{ID: "x", State: "maybe", Pub: "PEM"}, Invalid, 0},

		{"deny", DeniedSet{ID: "web1", Pub: "EVIL"}, OK, 11},
		{"deny again", DeniedSet{ID: "web1", Pub: "EVIL"}, OK, 11},
		{"clear another", DeniedClear{ID: "web1", Pub: "OTHER"}, Conflict, 11},
		{"clear", DeniedClear{ID: "web1", Pub: "EVIL"}, OK, 12},
		{"clear again", DeniedClear{ID: "web1"}, NotFound, 0},

		{"rotate", EpochRotate{Expect: 1, Key: testEpochKey('B'), Reason: "time"}, OK, 13},
		{"rotate, too late", EpochRotate{Expect: 1, Key: testEpochKey('C')}, Conflict, 13},
		{"rotate to itself", EpochRotate{Expect: 2, Key: testEpochKey('B')}, Invalid, 13},
		{"rotate to nonsense", EpochRotate{Expect: 2, Key: SecretText("short")}, Invalid, 0},
		{"gossip key", GossipKeyAdd{Expect: 1, Key: SecretText(strings.Repeat("h", 32))}, OK, 14},
		{"gossip key known", GossipKeyAdd{Expect: 2, Key: SecretText(strings.Repeat("g", 32))}, Invalid, 1},
		{"gossip drop, wrong", GossipKeyDrop{N: 1}, Conflict, 14},
		{"gossip drop", GossipKeyDrop{N: 2}, OK, 15},
		{"nothing", nil, Invalid, 0},
	}
	s := born(t)
	for _, st := range steps {
		r := s.ApplyCommands(st.cmd)[0]
		if r.Code != st.code || r.Rev != st.rev {
			t.Fatalf("%s: got %+v, want code %q rev %d", st.name, r, st.code, st.rev)
		}
		check(t, s)
	}
}

func TestUnborn(t *testing.T) {
	s := New()
	for _, c := range []Command{KeySet{ID: "a", State: KeyPending, Pub: "P"}, MemberRemove{ID: "m1"}, GossipKeyDrop{},
		EpochRotate{Key: testEpochKey('A')}} {
		if r := s.ApplyCommands(c)[0]; r.Code != NotInitialized {
			t.Errorf("%s: %+v", c.Type(), r)
		}
	}
	v := View{}
	if v.Initialized() || v.Rev() != 0 || v.KeysSince(0) != nil || len(v.Members()) != 0 {
		t.Error("the zero view is not empty")
	}
}

func TestKeysSince(t *testing.T) {
	s := born(t)
	set := func(id string, st KeyState) {
		t.Helper()
		r := s.ApplyCommands(KeySet{ID: id, State: st, Pub: "P", BaseRev: s.View().KeyRev(id)})[0]
		if r.Code != OK {
			t.Fatalf("%s: %+v", id, r)
		}
	}
	set("a", KeyPending)  // 2
	set("b", KeyAccepted) // 3
	set("c", KeyAccepted) // 4
	set("b", KeyDeleted)  // 5
	set("a", KeyAccepted) // 6
	for since, want := range map[uint64]string{
		0: "c@4 b@5- a@6", 1: "c@4 b@5- a@6", 4: "b@5- a@6", 5: "a@6", 6: "", 99: "",
	} {
		var got []string
		for _, c := range s.View().KeysSince(since) {
			txt := fmt.Sprintf("%s@%d", c.ID, c.Rev)
			if c.Deleted {
				txt += "-"
			}
			got = append(got, txt)
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("since %d: %q, want %q", since, g, want)
		}
	}
}

func TestRotationDue(t *testing.T) {
	s := born(t)
	do := func(c Command) {
		t.Helper()
		if r := s.ApplyCommands(c)[0]; r.Code != OK {
			t.Fatalf("%+v", r)
		}
	}
	due := func(want bool, when string) {
		t.Helper()
		if got := s.View().RotationDue(); got != want {
			t.Errorf("%s: due %v", when, got)
		}
	}
	do(KeySet{ID: "a", State: KeyPending, Pub: "P"})
	do(KeySet{ID: "a", State: KeyRejected, BaseRev: 2})
	due(false, "a pending key never had the epoch")
	do(KeySet{ID: "a", State: KeyAccepted, BaseRev: 3})
	do(KeySet{ID: "a", BaseRev: 4})
	due(true, "accepted key deleted")
	do(EpochRotate{Expect: 1, Key: testEpochKey('B')})
	due(false, "rotated")
	do(KeySet{ID: "a", State: KeyAccepted, Pub: "P", BaseRev: 5})
	do(KeySet{ID: "a", State: KeyAccepted, Pub: "Q", BaseRev: 7})
	due(true, "accepted key replaced")
}

// A rotation for another reason that comes before the one for a removal is that one: the epoch says so, and the
// revisions do.
func TestAnotherRotationCoversARemoval(t *testing.T) {
	s := born(t)
	for i, reason := range []string{"operator", "age"} {
		s.ApplyCommands(KeySet{ID: "m", State: KeyAccepted, Pub: "P", BaseRev: s.View().KeyRev("m")})
		s.ApplyCommands(KeySet{ID: "m", BaseRev: s.View().KeyRev("m")})
		held := s.View().Epochs().Current
		s.ApplyCommands(EpochRotate{Expect: held.N, Key: testEpochKey(byte('y' - i)), Reason: reason})
		v := s.View()
		if cur := v.Epochs().Current; v.RotationDue() || cur.Reason != ReasonRevoked || v.RevokedRev() <= held.Rev ||
			v.RevokedRev() >= cur.Rev {
			t.Errorf("rotated because of %s: epoch %+v, due %v, removed at %d, held since %d", reason, cur, v.RotationDue(),
				v.RevokedRev(), held.Rev)
		}
	}
	s.ApplyCommands(EpochRotate{Expect: s.View().Epochs().Current.N, Key: testEpochKey('w'), Reason: "age"})
	if cur := s.View().Epochs().Current; cur.Reason != "age" {
		t.Errorf("nobody was removed, but the epoch says %q", cur.Reason)
	}
}

func TestPruneAndStaleProposals(t *testing.T) {
	s := born(t)
	for i := range 5 {
		id := fmt.Sprintf("k%d", i)
		s.ApplyCommands(KeySet{ID: id, State: KeyAccepted, Pub: "P"})
		s.ApplyCommands(KeySet{ID: id, BaseRev: s.View().KeyRev(id), Audit: Audit{At: int64(i * 100)}})
	}
	seen := s.View().Rev()
	if r := s.ApplyCommands(TombstonesPrune{})[0]; r.Code != Invalid {
		t.Errorf("unbounded prune: %+v", r)
	}
	if r := s.ApplyCommands(TombstonesPrune{Before: 250, Keep: 3})[0]; r.Code != OK {
		t.Fatalf("prune: %+v", r)
	}
	if n := s.View().Tombstones(); n != 3 {
		t.Fatalf("%d tombstones, want 3", n)
	}
	// k0 and k1 are forgotten; who saw less than their deletion is refused.
	floor := s.View().TombstoneFloor()
	stale := KeySet{ID: "k0", State: KeyAccepted, Pub: "P", SeenRev: floor - 1}
	if r := s.ApplyCommands(stale)[0]; r.Code != Conflict {
		t.Errorf("stale after prune: %+v", r)
	}
	stale.BaseRev = 2
	if r := s.ApplyCommands(stale)[0]; r.Code != Conflict {
		t.Errorf("stale base after prune: %+v", r)
	}
	if r := s.ApplyCommands(KeySet{ID: "k0", State: KeyAccepted, Pub: "P", SeenRev: seen})[0]; r.Code != OK {
		t.Errorf("fresh after prune: %+v", r)
	}
	if r := s.ApplyCommands(TombstonesPrune{UpToRev: seen})[0]; r.Code != OK || s.View().Tombstones() != 0 {
		t.Errorf("prune all: %+v, %d left", r, s.View().Tombstones())
	}
}

func TestRequestsAreAppliedOnce(t *testing.T) {
	s := born(t)
	req := func(id string, since uint64, retry bool) []Result {
		return s.Apply(s.View().Index()+1, Entry{Requests: []Request{{
			ID: id, Since: since, Retry: retry, Commands: []Command{DeniedSet{ID: "x", Pub: id}},
		}}})[0]
	}
	since := s.View().Seq()
	first := req("r1", since, false)
	req("r2", since, false)
	if again := req("r1", since, true); again[0] != first[0] {
		t.Errorf("again: %+v, first %+v", again, first)
	}
	if k, _ := s.View().Denied("x"); k.Pub != "r2" {
		t.Errorf("the repeated request was applied again: %q", k.Pub)
	}
	for i := range dedupeRequests + 10 {
		req(fmt.Sprintf("fill-%d", i), 0, false)
	}
	if r := req("r1", since, true); r[0].Code != OutcomeUnknown {
		t.Errorf("a retry beyond memory: %+v", r)
	}
	if r := req("r3", s.View().Seq(), true); r[0].Code != OK {
		t.Errorf("a retry within memory that never arrived: %+v", r)
	}
	if n := s.cur.Load().requests.byID.len(); n != dedupeRequests {
		t.Errorf("%d remembered", n)
	}
}

func TestViewsDoNotChange(t *testing.T) {
	s := born(t)
	s.ApplyCommands(KeySet{ID: "a", State: KeyPending, Pub: "P"})
	v := s.View()
	before := dump(t, v)
	for i := range 300 {
		s.ApplyCommands(KeySet{ID: fmt.Sprintf("k%03d", i), State: KeyAccepted, Pub: "P"},
			MemberSet{ID: "m1", Weight: ptr(i + 1)})
	}
	s.ApplyCommands(KeySet{ID: "a", BaseRev: 2})
	if after := dump(t, v); after != before {
		t.Error("a view changed under its reader")
	}
	if m, _ := v.Member(node.ID("m1")); m.Weight != 100 {
		t.Errorf("weight %d", m.Weight)
	}
}

// dump is the state as its snapshot, which has everything.
func dump(t testing.TB, v View) string {
	t.Helper()
	var b strings.Builder
	if err := v.WriteSnapshot(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// check tests what must hold in every state.
func check(t testing.TB, s *State) {
	t.Helper()
	d := s.cur.Load()
	if d.keys.len() != d.keyRevs.len() || d.tombs.len() != d.tombRevs.len() ||
		d.requests.byID.len() != d.requests.bySeq.len() {
		t.Fatal("indexes disagree")
	}
	last := uint64(0)
	for _, c := range s.View().KeysSince(0) {
		if c.Rev <= last || c.Rev > d.rev {
			t.Fatalf("revision %d after %d, state at %d", c.Rev, last, d.rev)
		}
		last = c.Rev
		if _, ok := s.View().Key(c.ID); ok == c.Deleted {
			t.Fatalf("%s is both there and deleted", c.ID)
		}
	}
	if !d.roots.isComplete() || len(d.roots.list) > MaxRoots || d.roots.last > d.rev {
		t.Fatalf("the trees are in disorder: %+v", d.roots)
	}
	if d.isInitialized() && (len(d.members) == 0 || len(d.gossip) == 0) {
		t.Fatal("a born state without members or gossip keys")
	}
}
