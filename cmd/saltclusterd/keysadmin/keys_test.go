package keysadmin

import (
	"strings"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

func TestKeyList_Queries(t *testing.T) {
	s := state.New()
	secret := func(c string, n int) state.Secret { return state.SecretText(strings.Repeat(c, n)) }
	audit := state.Audit{By: "m1", At: 1000, Cause: "salt-key"}
	set := func(id string, st state.KeyState, base uint64) state.KeySet {
		return state.KeySet{ID: id, State: st, Pub: "PEM", BaseRev: base, Audit: audit}
	}
	for i, r := range s.ApplyCommands(
		state.Init{
			Identity:    state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
			Founder:     state.Member{ID: "m1", Addr: "10.0.0.1:4520", Fingerprint: strings.Repeat("a", 64), Weight: 100},
			EpochKey:    state.SecretText(strings.Repeat("QUFB", 18) + "QUE="),
			SessionSeed: secret("s", 32), GossipKey: secret("g", 32),
		},
		set("db1", state.KeyAccepted, 0), set("web1", state.KeyPending, 0), set("web2", state.KeyAccepted, 0),
		set("web2", state.KeyDeleted, 4),
	) {
		require.NoError(t, r.Err(), i)
	}
	for name, tt := range map[string]struct {
		q    adminapi.KeyQuery
		want string
		more int
	}{
		"all":          {adminapi.KeyQuery{}, "db1 accepted, web1 pending", 0},
		"a state":      {adminapi.KeyQuery{State: adminapi.KeyPending}, "web1 pending", 0},
		"a pattern":    {adminapi.KeyQuery{Match: "db*"}, "db1 accepted", 0},
		"deleted":      {adminapi.KeyQuery{ID: "web2"}, "web2 deleted", 0},
		"history":      {adminapi.KeyQuery{History: true}, "web2 deleted, web1 pending, db1 accepted", 0},
		"the first":    {adminapi.KeyQuery{Limit: 1}, "db1 accepted", 1},
		"what follows": {adminapi.KeyQuery{Limit: 1, After: "db1"}, "web1 pending", 0},
		"the newest":   {adminapi.KeyQuery{History: true, Limit: 1}, "web2 deleted", 2},
	} {
		if tt.q.Limit == 0 {
			tt.q.Limit = 100
		}
		l, err := newKeyList("m1", tt.q)
		require.NoError(t, err)
		var got []string
		out := l.selectKeys(s.View())
		for _, k := range out.Keys {
			got = append(got, k.ID+" "+k.State)
			if k.By != "m1" || k.Cause != "salt-key" || k.At != time.UnixMilli(1000).UTC() {
				t.Errorf("%s: %+v", name, k)
			}
		}
		if text := strings.Join(got, ", "); text != tt.want || out.More != tt.more {
			t.Errorf("%s: %s and %d more", name, text, out.More)
		}
	}
}

// A key is denied after the key beside it was put, so that a key which was decided about in the meantime is not
// changed at all.
func TestPutting_ChangedKeys(t *testing.T) {
	pub := func(n int) string {
		return "-----BEGIN PUBLIC KEY-----\n" + strings.Repeat(string(rune('A'+n)), 64) + "\n-----END PUBLIC KEY-----"
	}
	s := state.New()
	apply := func(cmds ...state.Command) []state.Result {
		t.Helper()
		results := s.ApplyCommands(cmds...)
		for _, r := range results {
			if r.Code == state.Invalid {
				t.Fatal(r.Err())
			}
		}
		return results
	}
	apply(
		state.Init{
			Identity:    state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
			Founder:     state.Member{ID: "m1", Addr: "10.0.0.1:4520", Fingerprint: strings.Repeat("a", 64), Weight: 100},
			EpochKey:    state.SecretText(strings.Repeat("QUFB", 18) + "QUE="),
			SessionSeed: state.SecretText(strings.Repeat("s", 32)), GossipKey: state.SecretText(strings.Repeat("g", 32)),
		},
		state.KeySet{ID: "kept", State: state.KeyAccepted, Pub: pub(0)},
		state.KeySet{ID: "gone", State: state.KeyAccepted, Pub: pub(0)},
		state.KeySet{ID: "moved", State: state.KeyPending, Pub: pub(0)},
	)
	v := s.View()
	apply(state.KeySet{ID: "gone", State: state.KeyDeleted, BaseRev: v.KeyRev("gone")})
	before := keysOf(s.View(), []string{"kept", "gone", "moved", "none"})
	if len(before.Keys) != 3 || before.Keys[1].State != adminapi.KeyDeleted || before.Keys[0].Rev == 0 ||
		before.Rev != s.View().Rev() {
		t.Fatalf("%+v", before)
	}
	rev := func(i int) uint64 { return before.Keys[i].Rev }
	apply(state.KeySet{ID: "moved", State: state.KeyAccepted, BaseRev: rev(2)}) // by somebody else
	p := newPutting(s.View(), adminapi.PutKeysRequest{From: "m2", Seen: before.Rev, Keys: []adminapi.PutKey{
		{ID: "kept", State: adminapi.KeyAccepted, Pub: pub(1), BaseRev: rev(0)},
		{ID: "gone", State: adminapi.KeyRejected, Pub: pub(1), BaseRev: rev(1), Denied: pub(2)},
		{ID: "moved", State: adminapi.KeyRejected, Pub: pub(1), BaseRev: rev(2), Denied: pub(2)},
		{ID: "new", State: adminapi.KeyPending, Pub: pub(1)},
		{ID: "moved", Denied: pub(3), BaseRev: rev(2)},
		{ID: "bad", State: adminapi.KeyPending, Pub: "-----BEGIN RSA PRIVATE KEY-----"},
	}}, state.Audit{By: "m1", At: 1000, Cause: "keys merge: m2"})
	p.noteResults(apply(p.proposeKeys()...))
	p.noteResults(apply(p.proposeDenials()...))
	for i, want := range []string{"", "", "is at revision", "", "was changed in the meantime", "invalid public key"} {
		if got := p.out.Keys[i].Error; (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", p.out.Keys[i].ID, got)
		}
	}
	v = s.View()
	for _, want := range []struct {
		id  string
		st  state.KeyState
		pub string
		not string
	}{
		{"kept", state.KeyAccepted, pub(1), pub(0)}, {"gone", state.KeyRejected, pub(1), pub(2)},
		{"moved", state.KeyAccepted, pub(0), ""}, {"new", state.KeyPending, pub(1), ""},
	} {
		k, _ := v.Key(want.id)
		d, _ := v.Denied(want.id)
		if k.State != want.st || k.Pub != want.pub || d.Pub != want.not {
			t.Errorf("%s: %+v, denied %+v", want.id, k, d)
		}
	}
}
