package roots

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"saltclusterd/fsync/apply"
	"saltclusterd/fsync/tree"
)

// The database holds what must survive: objects, the base, the plan of a switch under way, and what is kept and put
// aside.
var (
	bucketObjects   = []byte("objects")
	bucketMeta      = []byte("meta")
	bucketKept      = []byte("kept")
	bucketConflicts = []byte("conflicts")

	keyVersion   = []byte("version")
	keyBase      = []byte("base")
	keyJournal   = []byte("journal")
	keyProposals = []byte("proposals")
	keyAway      = []byte("away")
	keySpells    = []byte("spells")
)

// dbVersion is what this version writes.
const dbVersion = "1"

// db writes objects with the next value that is put: each write is two waits for the disk.
type db struct {
	b *bbolt.DB

	mu    sync.Mutex
	fresh tree.Memory // not written yet
	bytes int         // of them
}

// maxFresh is how much waits to be written with something else.
const maxFresh = 2 << 20

// base is what was last put on this disk, or proposed from it.
type base struct {
	Number uint64
	Root   Hash
	Slots  map[SlotName]Hash     // per slot, as it was when the slot was last available
	Idents map[SlotName]dirIdent // the directories it was on
	// Restored is the number of the last dropped revision whose deletions were undone here.
	Restored uint64
	// Merged says that local edits were merged with the head since the last proposal.
	Merged bool
	// Lacks says that files of it are not on this disk: a power failure has kept them from it. Whole is the revision
	// before then.
	Lacks bool
	Whole uint64
}

// whole is the revision of which everything is on this disk.
func (b base) whole() uint64 {
	if b.Lacks {
		return b.Whole
	}
	return b.Number
}

func (b base) clone() base {
	b.Slots, b.Idents = maps.Clone(b.Slots), maps.Clone(b.Idents)
	if b.Slots == nil {
		b.Slots = map[SlotName]Hash{}
	}
	if b.Idents == nil {
		b.Idents = map[SlotName]dirIdent{}
	}
	return b
}

// journal is a switch under way.
type journal struct {
	Base  base // afterwards
	Plans []apply.Plan
	Began time.Time
	// Unflushed says that its content was not on the disk when it began.
	Unflushed bool
	// Whole is the revision that was whole when it was put away, see away; zero: it was not.
	Whole uint64

	here bool // it began in this process: the disk has lost nothing
}

func openDB(dir string) (*db, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open roots: %w", err)
	}
	b, err := bbolt.Open(filepath.Join(dir, "roots.db"), 0o600,
		&bbolt.Options{Timeout: 10 * time.Second, NoFreelistSync: true})
	if err != nil {
		return nil, fmt.Errorf("open roots: %w", err)
	}
	err = b.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketObjects, bucketMeta, bucketKept, bucketConflicts} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		if v := meta.Get(keyVersion); v != nil && string(v) != dbVersion {
			return fmt.Errorf("the database has version %q, this program knows %s", v, dbVersion)
		}
		return meta.Put(keyVersion, []byte(dbVersion))
	})
	if err != nil {
		return nil, fmt.Errorf("open roots: %w", errors.Join(err, b.Close()))
	}
	return &db{b: b, fresh: tree.Memory{}}, nil
}

func (d *db) close() error { return errors.Join(d.flush(), d.b.Close()) }

// Object implements tree.Objects.
func (d *db) Object(h Hash) (out []byte, err error) {
	d.mu.Lock()
	out, ok := d.fresh[h]
	d.mu.Unlock()
	if ok {
		return out, nil
	}
	err = d.b.View(func(tx *bbolt.Tx) error {
		out = bytes.Clone(tx.Bucket(bucketObjects).Get(h[:]))
		return nil
	})
	if err == nil && out == nil {
		err = fmt.Errorf("%w: %s", tree.ErrNoObject, h.Short())
	}
	return out, err
}

// putObjects adds those that are not there. They are durable with the next put, or when there are many.
func (d *db) putObjects(objects ...tree.Memory) error {
	err := d.b.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketObjects)
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, m := range objects {
			for h, o := range m {
				if _, ok := d.fresh[h]; !ok && b.Get(h[:]) == nil {
					d.fresh[h] = o
					d.bytes += len(o)
				}
			}
		}
		return nil
	})
	if err != nil || d.waiting() < maxFresh {
		return err
	}
	return d.flush()
}

func (d *db) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes
}

// flush writes the objects that wait.
func (d *db) flush() error {
	if d.waiting() == 0 {
		return nil
	}
	return d.put()
}

// get reads a value; found is false when there is none.
func (d *db) get(bucket, key []byte, v any) (found bool, err error) {
	err = d.b.View(func(tx *bbolt.Tx) error {
		raw := tx.Bucket(bucket).Get(key)
		if raw == nil {
			return nil
		}
		found = true
		return gob.NewDecoder(bytes.NewReader(raw)).Decode(v)
	})
	if err != nil {
		err = fmt.Errorf("read %s: %w", key, err)
	}
	return found, err
}

// encoded is a value as the database has it.
type encoded []byte

func encode(v any) (encoded, error) {
	if e, ok := v.(encoded); ok {
		return e, nil
	}
	var buf bytes.Buffer
	err := gob.NewEncoder(&buf).Encode(v)
	return buf.Bytes(), err
}

// pair is a value, encoded or not, and where it goes; a nil value removes.
type pair struct {
	bucket, key []byte
	value       any
}

// put writes all or nothing, with the objects that wait.
func (d *db) put(pairs ...pair) error {
	d.mu.Lock()
	fresh := maps.Clone(d.fresh)
	d.mu.Unlock()
	err := d.b.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketObjects)
		for h, o := range fresh {
			if err := b.Put(h[:], o); err != nil {
				return err
			}
		}
		for _, p := range pairs {
			b := tx.Bucket(p.bucket)
			if p.value == nil {
				if err := b.Delete(p.key); err != nil {
					return err
				}
				continue
			}
			raw, err := encode(p.value)
			if err != nil {
				return fmt.Errorf("write %s: %w", p.key, err)
			}
			if err := b.Put(p.key, raw); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for h, o := range fresh {
		delete(d.fresh, h)
		d.bytes -= len(o)
	}
	return nil
}

// each reads all values of a bucket.
func each[T any](d *db, bucket []byte, fn func(key string, v T)) error {
	return d.b.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucket).ForEach(func(k, raw []byte) error {
			var v T
			if err := gob.NewDecoder(bytes.NewReader(raw)).Decode(&v); err != nil {
				return fmt.Errorf("read %s: %w", k, err)
			}
			fn(string(k), v)
			return nil
		})
	})
}
