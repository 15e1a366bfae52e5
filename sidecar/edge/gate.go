package edge

import "sync"

// gate counts places. Who finds none may wait for one, first come first
// served.
type gate struct {
	mu      sync.Mutex
	limit   int
	taken   int
	waiting []chan struct{}
}

// try takes a place if one is free and the waiting list is empty.
func (g *gate) try() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.taken >= g.limit || len(g.waiting) > 0 {
		return false
	}
	g.taken++
	return true
}

// force takes a place even when there is none.
func (g *gate) force() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken++
}

// wait takes a place as soon as there is one; false when done or stop closes first.
func (g *gate) wait(done, stop <-chan struct{}) bool {
	g.mu.Lock()
	if g.taken < g.limit && len(g.waiting) == 0 {
		g.taken++
		g.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	g.waiting = append(g.waiting, turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-done:
	case <-stop:
	}
	g.give(turn)
	return false
}

// give withdraws a waiter, and passes its place on if it just got one.
func (g *gate) give(turn chan struct{}) {
	g.mu.Lock()
	for i, w := range g.waiting {
		if w == turn {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			g.mu.Unlock()
			return
		}
	}
	g.mu.Unlock()
	g.release()
}

// release frees a place, or hands it to the first who waits.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.taken--
		return
	}
	close(g.waiting[0])
	if g.waiting = g.waiting[1:]; len(g.waiting) == 0 {
		g.waiting = nil
	}
}

func (g *gate) used() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken
}
