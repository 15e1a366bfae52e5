package eventbus

import (
	"slices"
	"sync"
	"sync/atomic"
)

type handler struct{ f func(tag string, data []byte) }

// handlers get each event that is received. They change seldom, and are read without a lock.
type handlers struct {
	mu   sync.Mutex // held while they change
	list atomic.Pointer[[]*handler]
}

// addHandler adds f until remove is called.
func (h *handlers) addHandler(f func(tag string, data []byte)) (remove func()) {
	added := &handler{f}
	h.change(func(list []*handler) []*handler { return append(list, added) })
	return func() {
		h.change(func(list []*handler) []*handler {
			return slices.DeleteFunc(list, func(other *handler) bool { return other == added })
		})
	}
}

func (h *handlers) change(edit func([]*handler) []*handler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := edit(slices.Clone(h.all()))
	h.list.Store(&list)
}

func (h *handlers) all() []*handler {
	if list := h.list.Load(); list != nil {
		return *list
	}
	return nil
}
