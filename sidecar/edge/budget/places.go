package budget

import "sync"

// Places is a limited number of places. Who finds none free may wait for one, first come first served.
type Places struct {
	mu      sync.Mutex
	limit   int
	taken   int
	waiting []chan struct{}
}

// NewPlaces returns so many free places.
func NewPlaces(limit int) Places { return Places{limit: limit} }

// Try takes a place if one is free and the waiting list is empty.
func (p *Places) Try() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.limit || len(p.waiting) > 0 {
		return false
	}
	p.taken++
	return true
}

// Force takes a place even when there is none.
func (p *Places) Force() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken++
}

// Wait takes a place as soon as there is one; false when done or stop closes first.
func (p *Places) Wait(done, stop <-chan struct{}) bool {
	p.mu.Lock()
	if p.taken < p.limit && len(p.waiting) == 0 {
		p.taken++
		p.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-done:
	case <-stop:
	}
	p.give(turn)
	return false
}

// give withdraws a waiter, and passes its place on if it just got one.
func (p *Places) give(turn chan struct{}) {
	p.mu.Lock()
	for i, w := range p.waiting {
		if w == turn {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			p.mu.Unlock()
			return
		}
	}
	p.mu.Unlock()
	p.Release()
}

// Release frees a place, or hands it to the first who waits.
func (p *Places) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.taken--
		return
	}
	close(p.waiting[0])
	if p.waiting = p.waiting[1:]; len(p.waiting) == 0 {
		p.waiting = nil
	}
}

// Used returns the number of places that are taken.
func (p *Places) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
