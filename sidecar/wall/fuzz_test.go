package wall

import (
	"encoding/json"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// FuzzCheck: whatever an accepted minion sends, it is judged without a panic; what goes on in its place is a load that
// is judged good.
func FuzzCheck(f *testing.F) {
	for _, c := range []struct {
		cmd string
		f   fields
	}{
		{"_minion_event", fields{"tag": "salt/minion/web1/start", "data": "x", "pretag": nil}},
		{"_minion_event", fields{"pretag": "syndic/web1", "events": list(event("salt/key"), event("lab/x"))}},
		{"_return", fields{"jid": publishedJID, "return": true, "fun": "test.ping", "resource_id": "x"}},
		{"_syndic_return", fields{"load": list(fields{"id": "web1", "jid": publishedJID,
			"return": fields{"low1": fields{"return": true}}})}},
		{"_return", fields{"jid": publishedJID, "fun": "state.sls", "retcode": 2,
			"return": fields{"salt/key_|-x_|-y_|-z": fields{"result": false, "id": "db1"}}}},
		{"_return", fields{"jid": publishedJID, "fun": list("state.sls"), "retcode": list(1),
			"return": list(fields{"a_|-b": fields{"result": false}})}},
		{"_mine_get", fields{"tgt": "a:b", "tgt_type": "pillar_pcre", "fun": "x"}},
		{"pub_ret", fields{"jid": "../x"}},
		{"_serve_file", fields{"path": "../x", "saltenv": "base", "loc": 0}},
		{"_file_list", fields{"prefix": "", "saltenv": "base"}},
		{"_file_find", fields{"path": "x?saltenv=dev&index=0", "saltenv": "."}},
		{"_file_envs", fields{"back": list("roots", "-git"), "fsbackend": "roots"}},
		{"_file_recv", fields{"path": list("etc", "fstab"), "loc": 0, "data": "x"}},
		{"_minion_event", fields{"events": list(event("salt/job/x/ret/web1",
			fields{"id": "db1", "minions": list("x"), "jid": "x"}), event("lab/x"))}},
		{"_register_resources", fields{"resources": fields{"ssh": list("a", 7)},
			"resource_grains": fields{"ssh:a": fields{}}}},
		{"_master_tops", fields{"opts": fields{"id": "db1", "grains": fields{"id": "web1"}}}},
		{"_pillar", fields{"grains": fields{}, "pillarenv": "x", "ext": fields{"git": "x"}}},
	} {
		f.Add(load(f, "web1", c.cmd, c.f))
	}
	policies := []Policy{{}, {Filters: true},
		{FileRecv: true, Syndics: true, Filters: true, OnDemand: []string{"libvirt"}}}
	f.Fuzz(func(t *testing.T, plain []byte) {
		p, err := saltwire.PeekLoad(plain)
		if err != nil {
			return
		}
		for _, policy := range policies {
			w := strict(policy)
			v := w.Check(&Request{Peek: &p, Plain: plain}, nil)
			if v.Refused || v.Plain == nil {
				continue
			}
			rest, err := saltwire.PeekLoad(v.Plain)
			require.NoError(t, err, "what is left cannot be read")
			if again := w.Check(&Request{Peek: &rest, Plain: v.Plain}, nil); again.Refused || again.Plain != nil {
				t.Fatalf("what is left is not good: %+v", again)
			}
		}
	})
}

// FuzzProofs: whatever another node says of the protocols of minions, nothing is remembered of a key that is not the
// accepted one, and what is can be told on.
func FuzzProofs(f *testing.F) {
	good, err := json.Marshal([]Proof{{ID: "web1", Key: HashKey("key"), Version: 3, Latest: 2}})
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`[{"id":"web1","key":"0102030405060708","version":-1},{"id":"","key":"","version":99999999999}]`))
	f.Add([]byte(`"0102030405060708"`))
	f.Add([]byte("zz"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var k KeyHash
		if err := k.UnmarshalText(b); err == nil && len(b) != 2*len(k) {
			t.Fatalf("%q is a hash", b)
		}
		var proofs []Proof
		if json.Unmarshal(b, &proofs) != nil {
			return
		}
		w := New(Config{})
		w.Remember(proofs, func(id string) (KeyHash, bool) { return HashKey("key"), id == "web1" })
		known := w.Proofs()
		if len(known) > 1 || len(known) == 1 && (known[0].ID != "web1" || known[0].Version < 1 ||
			known[0].Version > maxVersion) {
			t.Fatalf("remembered: %+v", known)
		}
		if _, err := json.Marshal(known); err != nil {
			t.Fatal(err)
		}
	})
}
