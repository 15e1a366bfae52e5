package scan

import (
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

// entry is the item as a tree has it, without its name.
func (i *Item) entry() tree.Entry {
	return tree.Entry{Type: i.Type, Mode: i.Mode, Chunks: i.Chunks, Target: i.Target}
}

// fresh says whether a path that has this Stat now needs no reading.
func (i *Item) fresh(now slotfs.Stat) bool {
	return i != nil && !i.Racy && i.Unchanged(now) && i.Ctime == now.Ctime
}

// Index is what is known of a slot, by path relative to it.
type Index map[string]*Item

// Equal says whether two items say the same.
func (i *Item) Equal(o *Item) bool {
	if i == o || i == nil || o == nil {
		return i == o
	}
	a, b := i.entry(), o.entry()
	return i.Stat == o.Stat && i.Racy == o.Racy && a.Same(&b)
}
