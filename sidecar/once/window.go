package once

import (
	"hash/maphash"
	"sync"
)

// Size is how many loads taken last are recognised, as a rule; one takes some 40 bytes.
const Size = 65536

// Window remembers the loads taken last. It may be used concurrently.
type Window struct {
	seed maphash.Seed

	mu      sync.Mutex
	keys    map[uint64]struct{}
	ring    []uint64
	next    int
	pending map[uint64][]func(error) // loads on their way, and who waits for the same
}

// NewWindow returns one for so many loads.
func NewWindow(size int) *Window {
	return &Window{
		seed: maphash.MakeSeed(), keys: map[uint64]struct{}{}, ring: make([]uint64, 0, size),
		pending: map[uint64][]func(error){},
	}
}

// Key is what a load is known by.
func (w *Window) Key(minion string, load []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(w.seed)
	_, _ = h.WriteString(minion)
	_ = h.WriteByte(0) // in no minion's id
	_, _ = h.Write(load)
	return h.Sum64()
}

// Claim says whether the caller is to take a load; then it has to Settle it. Otherwise another caller has taken it, or
// is taking it, and same is called with how that ended.
func (w *Window) Claim(key uint64, same func(error)) bool {
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
func (w *Window) Settle(key uint64, err error) {
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
func (w *Window) add(key uint64) {
	if _, ok := w.keys[key]; ok {
		return
	}
	w.keys[key] = struct{}{}
	if len(w.ring) < cap(w.ring) {
		w.ring = append(w.ring, key)
		return
	}
	delete(w.keys, w.ring[w.next])
	w.ring[w.next] = key
	w.next = (w.next + 1) % len(w.ring)
}
