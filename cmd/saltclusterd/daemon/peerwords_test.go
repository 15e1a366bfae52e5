package daemon

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"saltclusterd/gossip/node"
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

// FuzzDrainWishes is what another node can want of this one's next drain.
func FuzzDrainWishes(f *testing.F) {
	f.Add([]byte(`{"over":60000000000,"wait_jobs":true}`))
	f.Add([]byte(`{"over":-1}`))
	f.Add(bytes.Repeat([]byte(" "), maxDrain+1))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &member{svc: &service{}}
		m.svc.drain = newDrainer(m.svc)
		w := httptest.NewRecorder()
		drainWishesRPC.Handler(m.takeDrainWishes).ServeHTTP(w, httptest.NewRequest(http.MethodPost, pathDrain, bytes.NewReader(b)))
		switch got := m.svc.drain.wishes; {
		case w.Code != http.StatusOK && got != (drainWishes{}):
			t.Fatalf("%d, and yet %+v is wished", w.Code, got)
		case got.Over < 0 || len(b) > maxDrain && w.Code == http.StatusOK:
			t.Fatalf("%d bytes: %+v", len(b), got)
		}
	})
}
