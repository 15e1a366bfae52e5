package fileserve

import (
	"container/list"
	"sync"
)

// lru keeps values by key up to a total weight; who was not asked for longest goes first. Safe for concurrent use.
type lru[K comparable, V any] struct {
	max   int64
	ended func(V) // called without the lock for each value that goes; may be nil

	mu     sync.Mutex
	weight int64
	order  list.List // of *kept[K, V], the last used in front
	byKey  map[K]*list.Element
}

type kept[K comparable, V any] struct {
	key    K
	value  V
	weight int64
}

func newLRU[K comparable, V any](limit int64, ended func(V)) *lru[K, V] {
	return &lru[K, V]{max: limit, ended: ended, byKey: map[K]*list.Element{}}
}

func (c *lru[K, V]) get(key K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return v, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*kept[K, V]).value, true
}

// put keeps a value, which takes the place of one with the same key. One that is heavier than half of everything is not
// kept.
func (c *lru[K, V]) put(key K, v V, weight int64) {
	c.mu.Lock()
	var out []V
	if e := c.byKey[key]; e != nil {
		out = append(out, c.remove(e))
	}
	if weight > c.max/2 {
		out = append(out, v)
	} else {
		c.byKey[key] = c.order.PushFront(&kept[K, V]{key, v, weight})
		c.weight += weight
		for c.weight > c.max {
			out = append(out, c.remove(c.order.Back()))
		}
	}
	c.mu.Unlock()
	c.endValues(out)
}

// remove takes an entry out; mu is held.
func (c *lru[K, V]) remove(e *list.Element) V {
	k := c.order.Remove(e).(*kept[K, V])
	delete(c.byKey, k.key)
	c.weight -= k.weight
	return k.value
}

func (c *lru[K, V]) delete(key K) {
	c.mu.Lock()
	var out []V
	if e := c.byKey[key]; e != nil {
		out = append(out, c.remove(e))
	}
	c.mu.Unlock()
	c.endValues(out)
}

// dropIf removes those of which old says so.
func (c *lru[K, V]) dropIf(old func(V) bool) {
	c.mu.Lock()
	var out []V
	for e, next := c.order.Back(), (*list.Element)(nil); e != nil; e = next {
		if next = e.Prev(); old(e.Value.(*kept[K, V]).value) {
			out = append(out, c.remove(e))
		}
	}
	c.mu.Unlock()
	c.endValues(out)
}

func (c *lru[K, V]) endValues(out []V) {
	if c.ended == nil {
		return
	}
	for _, v := range out {
		c.ended(v)
	}
}

func (c *lru[K, V]) size() (n int, weight int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byKey), c.weight
}
