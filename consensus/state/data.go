package state

import (
	"saltclusterd/gossip/node"
)

// data is the whole state at one revision. A published data is immutable: maps
// and slices in it are replaced, not written, and tables are cloned first.
type data struct {
	ident Identity
	index uint64 // log position of the last entry
	rev   uint64 // last effective change

	removedRev uint64 // last change that took a member off the roster
	generation uint64 // how often the cluster was recovered, see Recover

	members map[node.ID]Member

	keyData

	epochs Epochs
	seeds  Seeds
	gossip []GossipKey // newest first
	roots  rootsData

	level uint16 // what all members understand

	tokens  []JoinToken // oldest first; replaced, not written
	secrets JoinSecrets
	change  IdentityChange

	requests requestLog
}

// keyData is what is decided about the keys of minions.
type keyData struct {
	keys     table[string, Key]
	keyRevs  table[uint64, Key]
	tombs    table[string, Tombstone]
	tombRevs table[uint64, Tombstone]
	denied   table[string, DeniedKey]

	revokedRev uint64 // last change that took an accepted key away
	deniedRev  uint64 // last change to the denied keys
	tombFloor  uint64 // highest revision among the forgotten tombstones
}

func newKeyData() keyData {
	return keyData{
		keys:     newTable[string, Key](),
		keyRevs:  newTable[uint64, Key](),
		tombs:    newTable[string, Tombstone](),
		tombRevs: newTable[uint64, Tombstone](),
		denied:   newTable[string, DeniedKey](),
	}
}

func (k keyData) clone() keyData {
	k.keys = k.keys.clone()
	k.keyRevs = k.keyRevs.clone()
	k.tombs = k.tombs.clone()
	k.tombRevs = k.tombRevs.clone()
	k.denied = k.denied.clone()
	return k
}

func newData() *data { return &data{keyData: newKeyData(), requests: newRequestLog()} }

// clone returns a writable copy; d itself stays readable and must not be
// written any more.
func (d *data) clone() *data {
	c := *d
	c.keyData = d.keyData.clone()
	c.requests = d.requests.clone()
	return &c
}

func (d *data) isInitialized() bool { return d.ident.UUID != "" }

// nextRevision starts a new revision.
func (d *data) nextRevision() uint64 {
	d.rev++
	return d.rev
}

// keyRev is the revision a proposal for id has to be based on: that of the key
// or of its tombstone, zero when neither exists.
func (d *data) keyRev(id string) uint64 {
	if k := d.keys.get(id); k != nil {
		return k.Rev
	}
	if t := d.tombs.get(id); t != nil {
		return t.Rev
	}
	return 0
}

func (d *data) putKey(k Key) {
	if old := d.keys.get(k.ID); old != nil {
		d.keyRevs.del(old.Rev)
	}
	d.dropTomb(k.ID)
	d.keys.put(k.ID, &k)
	d.keyRevs.put(k.Rev, &k)
}

// putTomb replaces a key by its tombstone. When there are too many, the oldest
// is forgotten: refusing to delete a key would be worse.
func (d *data) putTomb(t Tombstone) {
	if old := d.keys.get(t.ID); old != nil {
		d.keyRevs.del(old.Rev)
		d.keys.del(t.ID)
	}
	d.dropTomb(t.ID)
	d.tombs.put(t.ID, &t)
	d.tombRevs.put(t.Rev, &t)
	if d.tombs.len() > MaxTombstones {
		_, oldest := d.tombRevs.min()
		d.forgetTomb(oldest)
	}
}

func (d *data) dropTomb(id string) {
	if t := d.tombs.get(id); t != nil {
		d.tombRevs.del(t.Rev)
		d.tombs.del(id)
	}
}

func (d *data) forgetTomb(t *Tombstone) {
	d.dropTomb(t.ID)
	d.tombFloor = max(d.tombFloor, t.Rev)
}
