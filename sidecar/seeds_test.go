package sidecar

import (
	"bytes"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// What a minion has sealed with the session key of the seed before is served, and answered under that key, as long as
// it is good: by the local master, which holds the new key by then, and by another node's. Afterwards the minion is
// told to sign in.
func TestSessionOfTheSeedBefore(t *testing.T) {
	for name, c := range map[string]struct {
		peer   bool
		from   node.ID
		lapsed bool
		own    bool // the master's workers keep a key of their own
		opens  bool
	}{
		"by the local master":                   {opens: true},
		"by one that holds another key":         {own: true, opens: true},
		"handed over by a node that is behind":  {from: "n2", opens: true},
		"when it is not good any more":          {lapsed: true},
		"handed over, when it is not good here": {lapsed: true, from: "n2"},
		"by another node":                       {peer: true, opens: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			body := w.request(t, map[string]any{"cmd": "_pillar"})
			if !w.opened(w.send(t, body, "")) { // its session is kept by now
				t.Fatal("not served before")
			}
			before := saltcrypt.NewCrypticle(w.session())
			if c.own {
				own := newKey(t)
				w.masterKey = &own
			}
			if c.peer {
				w.view.Nodes[0].MasterUp = false
			}
			w.seed.Add(1)
			w.lapsed.Store(c.lapsed)
			reply := w.send(t, body, c.from)
			if c.peer {
				if len(w.atPeers) == 0 {
					t.Errorf("no node was asked: %v", w.atPeers)
				}
				return // it opens the request and seals the answer as this node would
			}
			if !c.opens {
				if !bytes.Equal(reply, saltwire.BadLoad()) || len(w.atMaster) != 1 {
					t.Errorf("answered %q, %d requests at the master", reply, len(w.atMaster))
				}
			} else if sealed, _ := saltwire.Bytes(reply); !opens(before, sealed) {
				t.Errorf("the minion cannot read %q", reply)
			}
			if got := w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), c.from); !w.opened(got) {
				t.Errorf("under the new key: %q", got)
			}
		})
	}
}

func opens(by *saltcrypt.Crypticle, sealed []byte) bool {
	plain, err := by.Open(nil, sealed)
	return err == nil && string(plain) == nonce+"\x81\xa2ok\xc3"
}
