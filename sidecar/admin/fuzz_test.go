package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

// everything is a backend that does whatever it is asked for, of all kinds.
func everything() *fakeBackend {
	return &fakeBackend{
		bootstrap: func(context.Context, adminapi.BootstrapRequest, Progress) (adminapi.Outcome, error) {
			return adminapi.Outcome{}, nil
		},
		join: func(context.Context, adminapi.JoinRequest, Progress) (adminapi.Outcome, error) {
			return adminapi.Outcome{}, nil
		},
		remove: func(context.Context, adminapi.RemoveRequest, Progress) (adminapi.Outcome, error) {
			return adminapi.Outcome{}, nil
		},
		transfer: func(context.Context, adminapi.TransferRequest, Progress) (adminapi.Outcome, error) {
			return adminapi.Outcome{}, nil
		},
		recover: func(context.Context, adminapi.RecoverRequest, Progress) (adminapi.Outcome, error) {
			return adminapi.Outcome{}, nil
		},
	}
}

// FuzzRequests is what somebody who may open the admin socket can post: each is answered, with an error that has a
// code, or as lines of JSON; a stranger is refused whatever he posts.
func FuzzRequests(f *testing.F) {
	verbs := []string{
		"GET status", "GET ring", "POST bootstrap", "POST join", "POST drain", "POST undrain", "POST remove", "POST transfer",
		"POST recover", "POST snapshot", "POST rotate", "GET nothing",
	}
	f.Add(uint8(3), "", `{"peer":"m1","wait":true,"timeout":5}`)
	f.Add(uint8(1), "minion=web1", "")
	f.Add(uint8(1), "minion=a&jid=b", "")
	f.Add(uint8(4), "", `{"node":"m1","over":1000000000,"wait_jobs":true}`)
	f.Add(uint8(8), "", `{"rev":18446744073709551615,"timeout":-1}`)
	f.Add(uint8(9), "wait=true&timeout=1s", "SNAPSHOT")
	f.Add(uint8(9), "wait=maybe&timeout=1s", "")
	f.Add(uint8(6), "", `{"node":"m1"}{}`)
	f.Add(uint8(10), "", `{"what":["aes"],"timeout":1e30}`)
	s, err := New(Config{Socket: "unused", Verbs: VerbsOf(everything())})
	require.NoError(f, err)
	h := s.newHandler()
	f.Fuzz(func(t *testing.T, verb uint8, query, body string) {
		method, path, _ := strings.Cut(verbs[int(verb)%len(verbs)], " ")
		ask := func(p peer) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, "http://x/v1/"+path, strings.NewReader(body))
			r.URL = &url.URL{Path: "/v1/" + path, RawQuery: query}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), peerKey{}, p)))
			return w
		}
		if w := ask(peer{uid: uint32(os.Geteuid()) + 1000}); w.Code != http.StatusForbidden {
			t.Fatalf("a stranger gets %d: %s", w.Code, w.Body)
		}
		w := ask(peer{uid: uint32(os.Geteuid())})
		for line := range strings.Lines(w.Body.String()) {
			if !json.Valid([]byte(line)) && path != "snapshot" {
				t.Fatalf("%s %s answers %d: %q", method, path, w.Code, line)
			}
		}
		if w.Code != http.StatusOK {
			var e adminapi.Error
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Code == "" || e.Message == "" {
				t.Fatalf("%s %s answers %d: %s", method, path, w.Code, w.Body)
			}
		}
	})
}
