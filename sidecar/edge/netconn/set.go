package netconn

import "sync"

// Set is the connections that an edge serves. It takes none while the edge drains. The zero value is ready.
type Set[C comparable] struct {
	mu       sync.Mutex
	conns    map[C]struct{}
	draining bool
}

// Add takes a connection and calls start, unless the edge drains: then it returns false.
func (s *Set[C]) Add(c C, start func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	if s.conns == nil {
		s.conns = map[C]struct{}{}
	}
	s.conns[c] = struct{}{}
	start()
	return true
}

// Remove forgets a connection.
func (s *Set[C]) Remove(c C) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// All lists the connections.
func (s *Set[C]) All() []C {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list()
}

// Each calls do with each connection. None is added or removed meanwhile.
func (s *Set[C]) Each(do func(C)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		do(c)
	}
}

// list wants mu.
func (s *Set[C]) list() []C {
	all := make([]C, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}

// Len returns the number of connections.
func (s *Set[C]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Retire makes the edge drain and lists the connections there are.
func (s *Set[C]) Retire() []C {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	return s.list()
}

// Draining tells whether the edge drains.
func (s *Set[C]) Draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// Resume ends that it drains.
func (s *Set[C]) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = false
}
