package drain

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
)

// FuzzSetOptions feeds what another node can send as options of this one's next drain.
func FuzzSetOptions(f *testing.F) {
	f.Add([]byte(`{"over":60000000000,"wait_jobs":true}`))
	f.Add([]byte(`{"over":-1}`))
	f.Add(bytes.Repeat([]byte(" "), maxQuestion+1))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := New(Config{})
		w := httptest.NewRecorder()
		optionsRPC.Handler(r.setOptionsForPeer).ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(b)))
		switch got := r.options; {
		case w.Code != http.StatusOK && got != (Options{}):
			t.Fatalf("status %d, but the options are %+v", w.Code, got)
		case got.Over < 0 || len(b) > maxQuestion && w.Code == http.StatusOK:
			t.Fatalf("%d bytes: %+v", len(b), got)
		}
	})
}
