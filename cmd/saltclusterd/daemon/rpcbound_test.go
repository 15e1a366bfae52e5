package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"saltclusterd/fsync/jobs"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/returns"
)

type memberKey struct{}

// A member whose requests do not end has its own places only.
func TestOneMemberLeavesPlacesForOthers(t *testing.T) {
	for path, all := range map[string]int{jobs.Path: 4, roots.Path: 6, returns.Path: 2} { // how many its handler serves at a time
		t.Run(path, func(t *testing.T) { oneMemberLeavesPlaces(t, path, all) })
	}
}

func oneMemberLeavesPlaces(t *testing.T, path string, all int) {
	if places[path] == 0 || places[path] >= all {
		t.Fatalf("one member has %d of %d places", places[path], all)
	}
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
		call(ctx, "thief", path)
	}
	for range places[path] {
		<-began
	}
	for _, other := range []struct {
		from node.ID
		path string
	}{{"m2", path}, {"thief", pathStats}, {"thief", relay.Path}} {
		call(t.Context(), other.from, other.path)
		if got := <-began; got != other.path {
			t.Fatalf("%s is worked on, not %s", got, other.path)
		}
	}
	giveUp() // who waits has gone
	for range 20 - places[path] {
		<-ended
	}
	select {
	case path := <-began:
		t.Errorf("one more request is worked on: %s", path)
	default:
	}
	close(end)
	for range places[path] + 3 {
		<-ended
	}
}

// A member that asks and asks has so many requests waiting, and no more; another one's wait beside them.
func TestFewRequestsOfOneMemberWait(t *testing.T) {
	s := newShares(func(ctx context.Context) (node.ID, bool) { id, ok := ctx.Value(memberKey{}).(node.ID); return id, ok })
	end := make(chan struct{})
	h := s.bound(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	waiting := func(of node.ID) int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.waiting[of]
	}
	answers := make(chan int, 3*waitingMost)
	call := func(from node.ID) {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), memberKey{}, from), http.MethodPost, jobs.Path, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		answers <- w.Code
	}
	const beyond = 10
	for range places[jobs.Path] + waitingMost + beyond {
		go call("thief")
	}
	for range beyond { // nobody else is answered
		if got := <-answers; got != http.StatusServiceUnavailable {
			t.Errorf("one too many is answered %d", got)
		}
	}
	for range places[jobs.Path] + 1 {
		go call("m2")
	}
	eventually(t, "another member's to wait", func() error {
		if n := waiting("m2"); n != 1 {
			return fmt.Errorf("%d wait", n)
		}
		return nil
	})
	close(end)
	for range 2*places[jobs.Path] + waitingMost + 1 {
		if got := <-answers; got != http.StatusOK {
			t.Errorf("one that waited is answered %d", got)
		}
	}
	if n := waiting("thief") + waiting("m2"); n != 0 {
		t.Errorf("%d wait at the end", n)
	}
}
