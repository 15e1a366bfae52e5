package feed

import "sync"

// Names is a bounded set that wakes whoever empties it.
type Names[K comparable] struct {
	limit int
	added func()

	mu   sync.Mutex
	in   map[K]struct{}
	over bool // names were turned away since the last Take
}

// NewNames returns a set of up to limit names that calls added after each Add.
func NewNames[K comparable](limit int, added func()) *Names[K] {
	return &Names[K]{limit: limit, added: added, in: map[K]struct{}{}}
}

// Add never blocks. A name that is in the set already is not added again.
func (s *Names[K]) Add(names ...K) {
	if len(names) == 0 {
		return
	}
	s.putNames(names)
	s.added()
}

func (s *Names[K]) putNames(names []K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if _, in := s.in[name]; !in && len(s.in) >= s.limit {
			s.over = true
			return
		}
		s.in[name] = struct{}{}
	}
}

// Take removes up to n names. Whole is false when the set has been full, so that others are missing.
func (s *Names[K]) Take(n int) (names []K, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.in {
		if len(names) == n {
			break
		}
		names = append(names, name)
		delete(s.in, name)
	}
	whole, s.over = !s.over, false
	return names, whole
}

// Has says whether a name is in the set.
func (s *Names[K]) Has(name K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, in := s.in[name]
	return in
}

// Len is how many names are in the set.
func (s *Names[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.in)
}

func (s *Names[K]) clearNames() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.in)
	s.over = false
}
