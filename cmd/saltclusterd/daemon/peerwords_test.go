package daemon

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"saltclusterd/sidecar/presence"
)

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
