package daemon

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"saltclusterd/fsync/jobs"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/relay"
)

type memberKey struct{}

// A member whose requests do not end has its own places only.
func TestOneMemberLeavesPlacesForOthers(t *testing.T) {
	began, end := make(chan string, 100), make(chan struct{})
	h := newShares(func(ctx context.Context) (node.ID, bool) { id, ok := ctx.Value(memberKey{}).(node.ID); return id, ok }).
		bound(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			began <- r.URL.Path
			<-end
		}))
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan struct{}, 100)
	call := func(ctx context.Context, from node.ID, path string) {
		r := httptest.NewRequestWithContext(context.WithValue(ctx, memberKey{}, from), http.MethodPost, path, nil)
		go func() {
			h.ServeHTTP(httptest.NewRecorder(), r)
			ended <- struct{}{}
		}()
	}
	for range 20 {
		call(ctx, "thief", jobs.Path)
	}
	for range places[jobs.Path] {
		<-began
	}
	for _, other := range []struct {
		from node.ID
		path string
	}{{"m2", jobs.Path}, {"thief", pathStats}, {"thief", relay.Path}} {
		call(t.Context(), other.from, other.path)
		if got := <-began; got != other.path {
			t.Fatalf("%s is worked on, not %s", got, other.path)
		}
	}
	giveUp() // who waits has gone
	for range 20 - places[jobs.Path] {
		<-ended
	}
	select {
	case path := <-began:
		t.Errorf("one more request is worked on: %s", path)
	default:
	}
	close(end)
	for range places[jobs.Path] + 3 {
		<-ended
	}
}
