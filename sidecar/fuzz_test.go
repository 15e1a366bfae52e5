package sidecar

import (
	"bytes"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// FuzzSealedLoad is everything a minion with an accepted key can say inside its envelope, at this node or relayed by
// another: n entries in rest follow those that make a load authentic. Whatever leaves for a master is the minion's own
// bytes, says a command that a Salt has, and names nobody else as who says it.
func FuzzSealedLoad(f *testing.F) {
	w := newWorld(f)
	tok, err := w.minion.SignX931([]byte("salt"))
	require.NoError(f, err)
	pairs := func(kv ...any) (uint8, []byte) {
		var b []byte
		for _, v := range kv {
			if b, err = saltwire.AppendAny(b, v, saltwire.Wire); err != nil {
				f.Fatal(err)
			}
		}
		return uint8(len(kv) / 2), b
	}
	add := func(kv ...any) {
		n, b := pairs(kv...)
		f.Add(n, b, false)
		f.Add(n, b, true)
	}
	for _, c := range router.Commands {
		add("cmd", c.Name, "jid", "20260101120000000000", "path", "top.sls", "saltenv", "base", "fun", "test.ping", "tgt",
			"*")
	}
	add("cmd", "_return", "jid", "20260101120000000000", "return", true, "master_id", "b", "fun", "test.ping")
	add("cmd", "_minion_event", "tag", "salt/job/1/ret/other", "data", map[string]any{"id": "other"})
	add("cmd", "_minion_event", "pretag", nil, "events",
		[]any{map[string]any{"tag": "a", "data": map[string]any{}}, map[string]any{"tag": "salt/key"}})
	add("cmd", "_syndic_return", "load", []any{map[string]any{"id": "other", "jid": "1",
		"return": map[string]any{"other": 1}}})
	add("cmd", "_pillar", "id", "other")
	add("cmd", "_mine_get", "cmd", "_mine")
	f.Fuzz(func(t *testing.T, n uint8, rest []byte, relayed bool) {
		nonEmpty, fixed := pairs("id", "web1", "nonce", nonce, "ts", time.Now().Unix(), "tok", tok)
		plain := append(saltwire.AppendMapHeader(nil, int(nonEmpty)+int(n)), append(fixed, rest...)...)
		body := saltwire.AppendEnvelope(nil, saltwire.Envelope{
			Enc: saltwire.EncAES, Version: 3, HasVersion: true, ID: "web1", EncAlgo: saltcrypt.OAEPSHA1,
			SigAlgo: saltcrypt.PKCS1v15SHA1,
			Load:    saltcrypt.NewCrypticle(w.session()).Seal(nil, plain, nil),
		})
		var from node.ID
		if relayed {
			from = "b"
		}
		w.mu.Lock()
		w.atMaster = w.atMaster[:0]
		w.mu.Unlock()
		_ = w.send(t, body, from)
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, got := range w.atMaster {
			checkForwarded(t, w, body, got)
		}
	})
}

func checkForwarded(t *testing.T, w *world, sent, got []byte) {
	t.Helper()
	env, err := saltwire.ParseEnvelope(got)
	if err != nil || env.ID != "web1" || env.Version != 3 {
		t.Fatalf("the master gets %+v, %v", env, err)
	}
	plain, err := saltcrypt.NewCrypticle(w.session()).Open(nil, env.Load)
	require.NoError(t, err)
	peek, err := saltwire.PeekLoad(plain)
	if err != nil || peek.ID != "web1" {
		t.Fatalf("the master gets a load of %q: %v", peek.ID, err)
	}
	if _, ok := router.Lookup(router.AES, peek.Cmd); !ok {
		t.Fatalf("the master gets the command %q", peek.Cmd)
	}
	if !bytes.Equal(got, sent) && peek.Cmd != "_minion_event" { // whose lists are split
		t.Fatal("the master gets other bytes than were sent")
	}
}
