package datacache

import (
	"hash/maphash"
	"sync"
)

// turns are locks by id: one minion's files are read and written, and what the table says of them is changed, by whoever holds its own.
// Minions share them, so that there is a bound. Store.mu is taken under one, never the other way round.
type turns struct {
	seed  maphash.Seed
	locks [64]sync.Mutex
}

func (t *turns) of(id string) *sync.Mutex {
	return &t.locks[maphash.String(t.seed, id)%uint64(len(t.locks))]
}

// all takes every turn, and returns what gives them back.
func (t *turns) all() (leave func()) {
	for i := range t.locks {
		t.locks[i].Lock()
	}
	return func() {
		for i := range t.locks {
			t.locks[i].Unlock()
		}
	}
}
