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

	mu      sync.Mutex
	keys    map[uint64]struct{}
	ring    []uint64
	next    int
	pending map[uint64][]func(error) // loads on their way to the disk, and who waits for the same
}

func newWindow(size int) *window {
	return &window{
		seed: maphash.MakeSeed(), keys: map[uint64]struct{}{}, ring: make([]uint64, 0, size), pending: map[uint64][]func(error){},
	}
}

func (w *window) key(minion string, load []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(w.seed)
	_, _ = h.WriteString(minion)
	_ = h.WriteByte(0) // in no minion's id
	_, _ = h.Write(load)
	return h.Sum64()
}

// claim says whether the caller is to take a load; then it has to settle it. Otherwise somebody has, or is about to, and same is
// called with how that ended.
func (w *window) claim(key uint64, same func(error)) bool {
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

// settle tells how taking a load ended.
func (w *window) settle(key uint64, err error) {
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
func (w *window) add(key uint64) {
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
