package apply

import (
	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// Verb is what an operation does.
type Verb uint8

// The verbs.
const (
	MakeDir   Verb = iota + 1
	Place          // a staged file or a symlink, where there was nothing or something other than a directory
	SetMode        // of a file or a directory
	Remove         // of anything but a directory
	RemoveDir      // when it is empty
	Restore        // as Place, of what was put aside; Stage is its name there
)

// Op is one operation of a plan.
type Op struct {
	Verb Verb
	Path string
	// Early removals clear the way for something of another type.
	Early bool
	Entry tree.Entry   // what will be there
	Old   tree.Entry   // what was there
	Was   *slotfs.Stat // how the disk showed it; nil: there was nothing, or it is not known
	Known bool         // what was there is known: nothing, or Was
	Aside string       // why what was there is put aside; empty: it is displaced

	// AsideID is the name in the area under which something is put aside.
	AsideID string

	Stage    string // the name of what is to be placed, in the area
	StageIno uint64 // its inode
	StageMod int64  // and its time
}

// Plan is what a switch does to one slot.
type Plan struct {
	Slot tree.Slot
	To   tree.Hash // the directory afterwards
	Ops  []Op
}
