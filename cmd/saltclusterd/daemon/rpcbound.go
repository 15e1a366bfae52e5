package daemon

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"saltclusterd/fsync/datacache"
	"saltclusterd/fsync/jobs"
	"saltclusterd/fsync/roots"
	"saltclusterd/fsync/tokens"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/returns"
)

// bodyWithin is how long a peer may take to send the body of a request. Bodies have places and bytes in common; one that sends
// a byte now and then must not keep them from the others.
const bodyWithin = 2 * time.Minute

// places is how many requests of one member are worked on at a time, by path; further ones wait. What holds a large body, or takes long,
// has few; where all members have some together (bodies of returns: two; trees: six; most others: four), one that is hostile must leave one.
var places = map[string]int{
	datacache.Data.Path(): 3, datacache.Mine.Path(): 3, jobs.Path: 3, tokens.Path: 2, mirror.Path: 2,
	returns.Path: 1, roots.Path: 4, pathLedger: 2, pathRootsDiff: 2, pathMigrate: 8, pathCatchup: 6, pathPropose: 128,
}

// otherPlaces is how many there are for all other paths together.
const otherPlaces = 64

// waitingMost is how many requests of one member wait for a place; each of them is a goroutine and a header. Honest members have some
// dozens.
const waitingMost = 4096

// bounded gives the body of every request a deadline and a place, but that of a stream of publications, which never ends, and relayed
// requests, which count bytes.
func bounded(h http.Handler) http.Handler { return newShares(peer.FromContext).bound(h) }

// shares are the places of each member.
type shares struct {
	from func(context.Context) (node.ID, bool)

	mu      sync.Mutex
	taken   map[place]chan struct{}
	waiting map[node.ID]int // requests
}

type place struct {
	member node.ID
	path   string // of places; empty: another
}

func newShares(from func(context.Context) (node.ID, bool)) *shares {
	return &shares{from: from, taken: map[place]chan struct{}{}, waiting: map[node.ID]int{}}
}

func (s *shares) bound(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != fanout.Path {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin)) // tests' writers have none
		}
		switch r.URL.Path {
		case fanout.Path, relay.Path, relay.PathSignIn:
			h.ServeHTTP(w, r)
			return
		}
		taken := s.of(r)
		select {
		case taken <- struct{}{}:
		default:
			if !s.wait(r, taken) {
				http.Error(w, "too many requests of this member wait", http.StatusServiceUnavailable)
				return
			}
		}
		defer func() { <-taken }()
		h.ServeHTTP(w, r)
	})
}

// wait waits for a place; false: there are too many who do, or nobody waits for the answer any more.
func (s *shares) wait(r *http.Request, taken chan struct{}) bool {
	member, _ := s.from(r.Context())
	s.mu.Lock()
	if s.waiting[member] >= waitingMost {
		s.mu.Unlock()
		return false
	}
	s.waiting[member]++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting[member]--; s.waiting[member] == 0 {
			delete(s.waiting, member)
		}
	}()
	select {
	case taken <- struct{}{}:
		return true
	case <-r.Context().Done():
		return false
	}
}

// of returns the places for a request: a channel that holds as many as are taken.
func (s *shares) of(r *http.Request) chan struct{} {
	member, _ := s.from(r.Context())
	path := r.URL.Path
	if strings.HasPrefix(path, pathCatchup) {
		path = pathCatchup
	}
	n, ok := places[path]
	if !ok {
		path, n = "", otherPlaces
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := place{member, path}
	if s.taken[key] == nil {
		s.taken[key] = make(chan struct{}, n)
	}
	return s.taken[key]
}
