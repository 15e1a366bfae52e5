package relay

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"saltclusterd/gossip/node"
)

// echo answers with what it got.
type echo struct{ body []byte }

func (e *echo) ServeRelayed(_ context.Context, _ node.ID, _ netip.AddrPort, body []byte, reply func([]byte), _ func()) {
	e.body = body
	reply(body)
}

// FuzzHandler is what a member can post: it arrives as it was sent, or not at all, and its room is given back.
func FuzzHandler(f *testing.F) {
	f.Add([]byte("hello"), "192.0.2.7:1234", int64(5))
	f.Add([]byte("hello"), "nobody", int64(-1))
	f.Add([]byte("hello"), "[::1%25lo]:1", int64(1)<<62)
	f.Add([]byte{}, "", int64(7))
	f.Fuzz(func(t *testing.T, body []byte, remote string, length int64) {
		if length > 1<<16 && length <= MaxBody { // allowed, and slow
			t.Skip()
		}
		rcv := &echo{}
		h := Handler(rcv, func(context.Context) (node.ID, bool) { return "a", true }, 1<<20)
		for range 2 { // a second one finds the room that the first had
			rcv.body = nil
			r := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body))
			r.Header.Set(headerRemote, remote)
			r.ContentLength = length
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			switch {
			case w.Code == http.StatusOK && (int64(len(rcv.body)) != length || !bytes.Equal(w.Body.Bytes(), rcv.body) || !bytes.HasPrefix(body, rcv.body)):
				t.Fatalf("%d bytes of %d, announced %d", len(rcv.body), len(body), length)
			case w.Code != http.StatusOK && rcv.body != nil:
				t.Fatalf("served and answered %d", w.Code)
			case w.Code != http.StatusOK && length == int64(len(body)) && length < MaxBody:
				t.Fatalf("%d bytes are refused: %d %s", length, w.Code, w.Body)
			}
		}
	})
}
