package peerrpc

import (
	"net/http"
	"sync/atomic"
)

// Switch answers "starting" until Use sets the handler.
type Switch struct{ h atomic.Pointer[http.Handler] }

// Use sets the handler.
func (s *Switch) Use(h http.Handler) { s.h.Store(&h) }

// ServeHTTP implements http.Handler.
func (s *Switch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := s.h.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	http.Error(w, "starting", http.StatusServiceUnavailable)
}
