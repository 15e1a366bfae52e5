package once

import (
	"hash/maphash"
	"sync"
)

const (
	// Size is how many loads taken last are recognised, as a rule; one takes some 80 bytes.
	Size = 65536
	// share is the part of them that one minion's may be: a sixteenth. Whoever sends more makes only its own forgotten.
	share = 16
)

// Key is what a load is known by.
type Key struct{ minion, load uint64 }

// Window remembers the loads taken last. It may be used concurrently.
type Window struct {
	seed maphash.Seed

	mu      sync.Mutex
	keys    map[Key]struct{}
	ring    []taken
	next    int // place in the ring of the load that is forgotten next
	minions map[uint64]minionLoads
	pending map[Key][]func(error) // loads on their way, and who waits for the same
}

// taken is a load in the ring. The loads of one minion are linked by their places, the oldest first.
type taken struct {
	key          Key
	older, newer int
}

// minionLoads says which loads of one minion are in the ring.
type minionLoads struct{ oldest, newest, count int }

// NewWindow returns one for so many loads.
func NewWindow(size int) *Window {
	return &Window{
		seed: maphash.MakeSeed(), keys: map[Key]struct{}{}, ring: make([]taken, 0, size),
		minions: map[uint64]minionLoads{}, pending: map[Key][]func(error){},
	}
}

// Key returns the key of a load.
func (w *Window) Key(minion string, load []byte) Key {
	return Key{maphash.String(w.seed, minion), maphash.Bytes(w.seed, load)}
}

// Claim says whether the caller is to take a load; then it has to Settle it. Otherwise another caller has taken it, or
// is taking it, and same is called with how that ended.
func (w *Window) Claim(key Key, same func(error)) bool {
	w.mu.Lock()
	if _, taken := w.keys[key]; taken {
		w.mu.Unlock()
		same(nil)
		return false
	}
	defer w.mu.Unlock()
	if waiting, under := w.pending[key]; under {
		w.pending[key] = append(waiting, same)
		return false
	}
	w.pending[key] = nil
	return true
}

// Settle tells how taking a load ended.
func (w *Window) Settle(key Key, err error) {
	w.mu.Lock()
	waiting := w.pending[key]
	delete(w.pending, key)
	if err == nil {
		w.add(key)
	}
	w.mu.Unlock()
	for _, same := range waiting {
		same(err)
	}
}

// add wants mu.
func (w *Window) add(key Key) {
	if _, ok := w.keys[key]; ok {
		return
	}
	w.keys[key] = struct{}{}
	at := len(w.ring)
	switch m := w.minions[key.minion]; {
	case m.count >= max(1, cap(w.ring)/share):
		at = m.oldest
		w.forget(at)
	case at < cap(w.ring):
		w.ring = append(w.ring, taken{})
	default:
		at = w.next
		w.next = (w.next + 1) % len(w.ring)
		oldest := w.minions[w.ring[at].key.minion].oldest // elsewhere when its places were used again
		w.forget(oldest)
		if oldest != at {
			w.move(at, oldest)
		}
	}
	m := w.minions[key.minion]
	w.ring[at] = taken{key: key, older: m.newest}
	if m.count == 0 {
		m.oldest = at
	} else {
		w.ring[m.newest].newer = at
	}
	m.newest = at
	m.count++
	w.minions[key.minion] = m
}

// move has the load at one place at another one, which is free. It wants mu.
func (w *Window) move(from, to int) {
	l := w.ring[from]
	w.ring[to] = l
	m := w.minions[l.key.minion]
	if m.oldest == from {
		m.oldest = to
	} else {
		w.ring[l.older].newer = to
	}
	if m.newest == from {
		m.newest = to
	} else {
		w.ring[l.newer].older = to
	}
	w.minions[l.key.minion] = m
}

// forget drops the load at a place of the ring, which is the oldest of its minion. It wants mu.
func (w *Window) forget(at int) {
	l := w.ring[at]
	delete(w.keys, l.key)
	m := w.minions[l.key.minion]
	if m.count--; m.count == 0 {
		delete(w.minions, l.key.minion)
		return
	}
	m.oldest = l.newer
	w.minions[l.key.minion] = m
}
