package datacache

import "sync"

// maxPending bounds the ids that wait for one peer, or for a look.
const maxPending = 50_000

// idSet is a bounded set of ids that wakes whoever empties it.
type idSet struct {
	limit int
	wake  chan struct{} // gets a value after an add

	mu   sync.Mutex
	ids  map[string]struct{}
	over bool // ids were turned away since the last take
}

func newIDSet(limit int) *idSet {
	return &idSet{limit: limit, wake: make(chan struct{}, 1), ids: map[string]struct{}{}}
}

// add never blocks. An id that is in the set already is not added again.
func (s *idSet) add(ids ...string) {
	s.mu.Lock()
	for _, id := range ids {
		if _, in := s.ids[id]; !in && len(s.ids) >= s.limit {
			s.over = true
			break
		}
		s.ids[id] = struct{}{}
	}
	s.mu.Unlock()
	signal(s.wake)
}

// take removes up to n ids. whole is false when the set has been full, so that others are missing.
func (s *idSet) take(n int) (ids []string, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.ids {
		if len(ids) == n {
			break
		}
		ids = append(ids, id)
		delete(s.ids, id)
	}
	whole, s.over = !s.over, false
	return ids, whole
}

func (s *idSet) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, in := s.ids[id]
	return in
}

func (s *idSet) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
