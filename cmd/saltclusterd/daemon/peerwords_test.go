package daemon

import (
	"encoding/json"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/presence"
)

// FuzzJoinWords is what the two sides of a join tell each other when both have proved themselves.
func FuzzJoinWords(f *testing.F) {
	w, err := json.Marshal(welcome{
		Version: welcomeVersion, UUID: "u", Private: []byte("pem"), Public: []byte("pub"), Rev: 3, GossipKeys: [][]byte{make([]byte, 32)},
		Members: []node.Entry{{ID: "m1"}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(w)
	f.Add([]byte(`{"witness":true}`))
	f.Add([]byte(`{"members":[{"Addr":"192.0.2.1:1"},null]}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := parsePetition(b); err == nil && len(b) > 0 && !json.Valid(b) {
			t.Fatalf("%q asks for %+v", b, p)
		}
		w, err := parseWelcome(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(w)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := parseWelcome(again); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

// FuzzPresenceWord is what another node says of the minions it sees, and what this one has remembered.
func FuzzPresenceWord(f *testing.F) {
	f.Add([]byte(`{"now":"2026-01-02T03:04:05Z","groups":[{"from":"10.0.0.1","count":2,"young":1}],"named":[{"from":"::1","hash":"00"}],` +
		`"met":[{"id":"web1","key":"0001020304050607","at":"2026-01-02T03:04:05Z","from":"10.0.0.1"}],"told":{"term":1,"n":2,"ids":["web1"]}}`))
	f.Add([]byte(`{"groups":[{"from":"","count":1}]}`))
	f.Add([]byte(`{"groups":[{"from":"10.0.0.1","count":-1}]}`))
	f.Add([]byte(`{"at":"2026-01-02T03:04:05Z","told":{"term":1,"n":2,"ids":["web1"]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parsePresenceMemory(b)
		var w presenceWord
		if json.Unmarshal(b, &w) != nil || w.validate() != nil {
			return
		}
		s := presence.Scene{IDs: []string{"web1"}, Seen: map[string]presence.Sighting{}, Groups: w.Groups, Named: w.Named}
		for _, m := range w.Met {
			s.Seen[m.ID] = presence.Sighting{ID: m.ID, At: m.At, From: m.From}
		}
		if got := presence.Judge(s, time.Now()); len(got) != 1 || got[0].ID != "web1" {
			t.Fatalf("%+v", got)
		}
	})
}
