package daemon

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
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
