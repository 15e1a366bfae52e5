package returns

import (
	"hash/maphash"
	"sync"
)

// windowSize is how many loads taken last are recognised when they come again; one takes some 40 bytes.
const windowSize = 65536

// window remembers the loads taken last. Requests carry a nonce, so equal bytes are one request that took two ways, or
// somebody's replay.
type window struct {
	seed maphash.Seed

	mu   sync.Mutex
	keys map[uint64]struct{}
	ring []uint64
	next int
}

func newWindow(size int) *window {
	return &window{seed: maphash.MakeSeed(), keys: map[uint64]struct{}{}, ring: make([]uint64, 0, size)}
}

func (w *window) key(minion string, load []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(w.seed)
	_, _ = h.WriteString(minion)
	_ = h.WriteByte(0) // in no minion's id
	_, _ = h.Write(load)
	return h.Sum64()
}

func (w *window) has(key uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.keys[key]
	return ok
}

func (w *window) add(key uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
