package state

import (
	"cmp"

	"github.com/google/btree"
)

const degree = 32

// row keeps the sort key beside a pointer to an immutable value, so that the
// nodes which copy-on-write has to copy stay small.
type row[K cmp.Ordered, V any] struct {
	k K
	v *V
}

// table is an ordered map that can be cloned in constant time. A table that
// was published in a View is never written again; only its clone is.
type table[K cmp.Ordered, V any] struct{ t *btree.BTreeG[row[K, V]] }

func newTable[K cmp.Ordered, V any]() table[K, V] {
	return table[K, V]{btree.NewG(degree, func(a, b row[K, V]) bool { return a.k < b.k })}
}

func (t table[K, V]) clone() table[K, V] { return table[K, V]{t.t.Clone()} }
func (t table[K, V]) len() int           { return t.t.Len() }

func (t table[K, V]) get(k K) *V {
	r, _ := t.t.Get(row[K, V]{k: k})
	return r.v
}

// put stores v, which the caller must not change afterwards.
func (t table[K, V]) put(k K, v *V) { t.t.ReplaceOrInsert(row[K, V]{k, v}) }
func (t table[K, V]) del(k K)       { t.t.Delete(row[K, V]{k: k}) }

func (t table[K, V]) min() (k K, v *V) {
	r, _ := t.t.Min()
	return r.k, r.v
}

// ascend visits all rows from k on, in order, until f says false.
func (t table[K, V]) ascend(from K, f func(K, *V) bool) {
	t.t.AscendGreaterOrEqual(row[K, V]{k: from}, func(r row[K, V]) bool { return f(r.k, r.v) })
}
