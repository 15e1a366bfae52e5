package keydir

import (
	"maps"

	"saltclusterd/fsync/mmapkeys"
)

// lastSynced is the memory of what the store held when it and the files were last made the same: what differs from it
// there is an edit. Most of it is what the base says, so only the rest is kept in the base's file.
type lastSynced struct {
	banks       [2]bankID
	is          map[subject]entry
	initialized bool // the store was looked at, and this saved, in some run
	blank       bool // the store held no key then
}

// bankID tells a bank from one that was put in its place, or emptied. The zero one is none: what has lost pages is as
// strange.
type bankID struct {
	ID   string `json:"id"`
	High uint64 `json:"high,omitempty"`
	Heap int64  `json:"heap,omitempty"`
}

func idOf(c mmapkeys.Content) bankID { return bankID{c.Mark.Identity(), c.High, c.Heap} }

// isSameBank says whether c is the bank that id is of, some time later.
func (id bankID) isSameBank(c mmapkeys.Content) bool {
	return id.ID != "" && id.ID == c.Mark.Identity() && c.High >= id.High && c.Heap >= id.Heap
}

// storeFile is what of it is kept in the base's file.
type storeFile struct {
	Banks  [2]bankID            `json:"banks"`
	Blank  bool                 `json:"blank,omitempty"`
	Keys   map[string]basedFile `json:"keys,omitempty"`
	Denied map[string]basedFile `json:"denied,omitempty"`
}

// lastSyncedOf makes the memory from the base.
func lastSyncedOf(b *base, f *storeFile) *lastSynced {
	t := &lastSynced{is: map[subject]entry{}}
	if f == nil {
		return t
	}
	t.initialized, t.banks, t.blank = true, f.Banks, f.Blank
	for id, v := range b.Keys {
		t.setEntry(subject{id: id}, v.entry)
	}
	for id, v := range b.Denied {
		t.setEntry(subject{id, true}, v.entry)
	}
	for id, v := range f.Keys {
		t.setEntry(subject{id: id}, entry{v.State, v.Print})
	}
	for id, v := range f.Denied {
		t.setEntry(subject{id, true}, entry{v.State, v.Print})
	}
	return t
}

func (t *lastSynced) setEntry(s subject, e entry) bool {
	old := t.is[s]
	if e == (entry{}) {
		delete(t.is, s)
	} else {
		t.is[s] = e
	}
	return old != e
}

// storeFile is what lastSyncedOf needs beside the base.
func (t *lastSynced) storeFile(b *base) *storeFile {
	f := &storeFile{Banks: t.banks, Blank: t.blank, Keys: map[string]basedFile{}, Denied: map[string]basedFile{}}
	all := maps.Clone(t.is)
	for id := range b.Keys {
		all[subject{id: id}] = t.is[subject{id: id}]
	}
	for id := range b.Denied {
		all[subject{id, true}] = t.is[subject{id, true}]
	}
	for s, e := range all {
		if v, _ := b.baseOf(s); v.entry == e {
			continue
		}
		into := f.Keys
		if s.denied {
			into = f.Denied
		}
		into[s.id] = basedFile{State: e.State, Print: e.Print}
	}
	return f
}
