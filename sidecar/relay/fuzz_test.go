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

func (e *echo) ServeRelayed(_ context.Context, _ node.ID, _ netip.AddrPort, body []byte, to Hands) {
	e.body = body
	to.Reply(body)
}

func (e *echo) ServeSignIn(ctx context.Context, from node.ID, remote netip.AddrPort, body []byte, to Hands) {
	e.ServeRelayed(ctx, from, remote, body, to)
}

// FuzzHandler is what a member can post: it arrives as it was sent, or not at all, and its room is given back.
func FuzzHandler(f *testing.F) {
	f.Add([]byte("hello"), "192.0.2.7:1234", int64(5), false)
	f.Add([]byte("hello"), "nobody", int64(-1), false)
	f.Add([]byte("hello"), "[::1%25lo]:1", int64(1)<<62, true)
	f.Add([]byte{}, "", int64(7), true)
	f.Add(make([]byte, 10), "192.0.2.7:1234", int64(MaxSignIn+1), true)
	f.Fuzz(func(t *testing.T, body []byte, remote string, length int64, signIn bool) {
		path, largest := Path, int64(MaxBody)
		if signIn {
			path, largest = PathSignIn, MaxSignIn
		}
		if length > 1<<16 && length <= largest { // allowed, and slow
			t.Skip()
		}
		rcv := &echo{}
		h := Handler(rcv, func(context.Context) (node.ID, bool) { return "a", true }, 1<<20)
		for range 2 { // a second one finds the room that the first had
			rcv.body = nil
			r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
			r.Header.Set(headerRemote, remote)
			r.ContentLength = length
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			switch {
			case w.Code == http.StatusOK && (int64(len(rcv.body)) != length || !bytes.Equal(w.Body.Bytes(), rcv.body) ||
				!bytes.HasPrefix(body, rcv.body)):
				t.Fatalf("%d bytes of %d, announced %d", len(rcv.body), len(body), length)
			case w.Code != http.StatusOK && rcv.body != nil:
				t.Fatalf("served and answered %d", w.Code)
			case w.Code != http.StatusOK && length == int64(len(body)) && length < largest:
				t.Fatalf("%d bytes are refused: %d %s", length, w.Code, w.Body)
			}
		}
	})
}
