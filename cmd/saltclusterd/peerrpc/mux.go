package peerrpc

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"saltclusterd/gossip/node"
)

const (
	// bodyTimeout is how long a peer may take to send the body of a request. Bodies share places and bytes; one that sends
	// a byte now and then must not keep them from the others.
	bodyTimeout = 2 * time.Minute
	// sharedPlaces is how many requests of one member are worked on at a time, on all paths together that have no places
	// of their own.
	sharedPlaces = 64
	// maxWaiting is how many requests of one member wait for a place; each of them costs a goroutine and a header. Honest
	// members have some dozens.
	maxWaiting = 4096
)

// Mux routes requests of members and limits how many of one member are worked on at a time; further ones wait.
type Mux struct {
	from func(context.Context) (node.ID, bool)
	mux  *http.ServeMux

	places  map[string]int  // by path or, if it ends with a slash, by its beginning
	streams map[string]bool // paths without a limit
	endless map[string]bool // those of them whose bodies never end

	mu      sync.Mutex
	taken   map[place]chan struct{}
	waiting map[node.ID]int // requests
}

type place struct {
	member node.ID
	path   string // one of places; empty: another
}

// NewMux returns a Mux without routes. from tells which member sent a request.
func NewMux(from func(context.Context) (node.ID, bool)) *Mux {
	return &Mux{
		from: from, mux: http.NewServeMux(), places: map[string]int{}, streams: map[string]bool{}, endless: map[string]bool{},
		taken: map[place]chan struct{}{}, waiting: map[node.ID]int{},
	}
}

// Handle routes a pattern of http.ServeMux to a handler.
func (m *Mux) Handle(pattern string, h http.Handler) { m.mux.Handle(pattern, h) }

// Limit gives a path that many places for each member. Where all members have some together, one that is hostile must
// leave one.
func (m *Mux) Limit(path string, places int) { m.places[path] = places }

// Unlimit takes a path out of the limit: its handler counts bytes.
func (m *Mux) Unlimit(path string) { m.streams[path] = true }

// Stream takes a path out of the limit and its bodies out of the timeout.
func (m *Mux) Stream(path string) { m.streams[path], m.endless[path] = true, true }

// ServeHTTP implements http.Handler.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !m.endless[r.URL.Path] {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // the writers of tests have none
	}
	if m.streams[r.URL.Path] {
		m.mux.ServeHTTP(w, r)
		return
	}
	taken := m.placesFor(r)
	select {
	case taken <- struct{}{}:
	default:
		if !m.waitForPlace(r, taken) {
			http.Error(w, "too many waiting requests of this member", http.StatusServiceUnavailable)
			return
		}
	}
	defer func() { <-taken }()
	m.mux.ServeHTTP(w, r)
}

// waitForPlace returns false if too many requests wait, or if the caller has gone.
func (m *Mux) waitForPlace(r *http.Request, taken chan struct{}) bool {
	member, _ := m.from(r.Context())
	m.mu.Lock()
	if m.waiting[member] >= maxWaiting {
		m.mu.Unlock()
		return false
	}
	m.waiting[member]++
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.waiting[member]--; m.waiting[member] == 0 {
			delete(m.waiting, member)
		}
	}()
	select {
	case taken <- struct{}{}:
		return true
	case <-r.Context().Done():
		return false
	}
}

// placesFor returns the places for a request: a channel that holds as many values as are taken.
func (m *Mux) placesFor(r *http.Request) chan struct{} {
	member, _ := m.from(r.Context())
	path := r.URL.Path
	n, ok := m.places[path]
	if !ok {
		path = path[:strings.LastIndexByte(path, '/')+1]
		n, ok = m.places[path]
	}
	if !ok {
		path, n = "", sharedPlaces
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := place{member, path}
	if m.taken[key] == nil {
		m.taken[key] = make(chan struct{}, n)
	}
	return m.taken[key]
}
