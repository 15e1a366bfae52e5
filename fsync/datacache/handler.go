package datacache

import (
	"errors"
	"io"
	"net/http"

	"saltclusterd/gossip/node"
)

// Handler takes what other members send to the path of the Store's kind.
func (s *Store) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }

func (s *Store) serveHTTP(w http.ResponseWriter, r *http.Request) {
	from, ok := s.cfg.From(r.Context())
	switch {
	case !ok:
		http.Error(w, "not a member", http.StatusForbidden)
		return
	case s.off != "": // what they have is of no use here
		return
	}
	select {
	case s.bodies <- struct{}{}:
		defer func() { <-s.bodies }()
	case <-r.Context().Done():
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		http.Error(w, "body too large", http.StatusRequestEntityTooLarge)
		return
	}
	m, err := decode(s.cfg.Kind, body)
	if err != nil {
		s.fail("decode", "", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.take(from, m); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// errNotYet says that this node does not know the sender as a member yet.
var errNotYet = errors.New("starting")

// take acts on a message of a peer. A record that cannot be written is asked for again later, and the others are still
// taken.
func (s *Store) take(from node.ID, m message) error {
	p, known := s.feed.Peer(from)
	if known {
		p.Alive()
	}
	if m.digest != nil {
		if !known {
			return errNotYet
		}
		s.answer(p, *m.digest)
		return nil
	}
	root, err := s.disk.root()
	if err != nil {
		return err
	}
	defer root.Close()
	for _, r := range m.records {
		what, err := s.accept(root, r)
		s.metrics.received.WithLabelValues(string(what)).Inc()
		if err != nil {
			s.fail("accept", r.id, err)
			continue
		}
		s.feed.Got(r.id) // or it would not be taken
	}
	return nil
}
