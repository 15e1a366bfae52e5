package scan

import (
	"maps"
	"time"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// Item is what is known of a path. Directories have their Stat only.
type Item struct {
	slotfs.Stat
	Racy   bool // it was read so soon after a change that its times may not tell the next one
	Chunks []tree.Chunk
	Target string
}

// treeEntry is the item as a tree has it, without its name.
func (i *Item) treeEntry() tree.Entry {
	return tree.Entry{Type: i.Type, Mode: i.Mode, Chunks: i.Chunks, Target: i.Target}
}

// Fresh says whether a path that has this Stat now needs no reading.
func (i *Item) Fresh(now slotfs.Stat) bool {
	return i != nil && !i.Racy && i.Unchanged(now) && i.Ctime == now.Ctime
}

// Index is what is known of a slot, by path relative to it.
type Index map[string]*Item

// Equal says whether two items say the same.
func (i *Item) Equal(o *Item) bool {
	if i == o || i == nil || o == nil {
		return i == o
	}
	a, b := i.treeEntry(), o.treeEntry()
	return i.Stat == o.Stat && i.Racy == o.Racy && a.Same(&b)
}

// Placed makes the item of a file that was written elsewhere and renamed: its last change was before that.
func Placed(st slotfs.Stat, e tree.Entry, now time.Time) *Item {
	return &Item{Stat: st, Chunks: e.Chunks, Target: e.Target, Racy: Racy(st.Mtime, now)}
}

// Clone copies the index; items are never changed.
func (ix Index) Clone() Index {
	if ix == nil {
		return Index{}
	}
	return maps.Clone(ix)
}
