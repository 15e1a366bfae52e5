package masterlink

import (
	"context"
	"fmt"
	"path/filepath"

	"saltclusterd/backoff"
	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

const (
	// storeDriver is the option keys.cache_driver of a master that has its keys in a store of its own.
	storeDriver = "mmap_key"
	// storeNearlyFull is the share of a store's slots above which health warns.
	storeNearlyFull = 0.8
)

// KeyStore is the key store of the local master's own, which the key directory keeps matches the files. A master
// on a shared file system counts as one without: other hosts' mappings of a file there do not show changes made here.
type KeyStore struct {
	Master *localmaster.Config
	Shared bool // the masters of the cluster share a file system
}

// configuredStore returns the layout of the master's store, nil when it has its keys in files only.
func configuredStore(c *localmaster.Config) *mmapkeys.Geometry {
	if c.Version.Major < 3008 || c.Text("keys.cache_driver") != storeDriver {
		return nil
	}
	g := mmapkeys.Configured(func(name string) int { return int(c.Int(name)) })
	return &g
}

// Geometry returns the layout of the store, nil without one.
func (k KeyStore) Geometry() *mmapkeys.Geometry {
	if k.Shared {
		return nil
	}
	return configuredStore(k.Master)
}

// Bank returns one of the banks of the store. It is nil without a store, or when the store cannot be used, which the
// key directory reports.
func (k KeyStore) Bank(name string) *mmapkeys.Bank {
	g := k.Geometry()
	if g == nil {
		return nil
	}
	b, err := mmapkeys.NewBank(k.Master.PkiDir, name, *g)
	if err != nil {
		return nil
	}
	return b
}

// PlaceHidden puts saltclusterd's own minion key into the store, where no listing shows it.
func (k KeyStore) PlaceHidden(ctx context.Context, id, pub string) error {
	b := k.Bank(mmapkeys.Keys)
	if b == nil {
		return nil
	}
	value := mmapkeys.EncodeKey(mmapkeys.Accepted, pub)
	e, ok, err := b.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("put saltclusterd's own key into the salt-master's key store: %w", err)
	}
	if ok && !e.Damaged && !e.Listed && string(e.Value) == string(value) {
		return nil
	}
	if err := b.Apply(ctx, []mmapkeys.Change{{Key: id, Value: value, Hidden: true}})[0]; err != nil {
		return fmt.Errorf("put saltclusterd's own key into the salt-master's key store: %w", err)
	}
	if !backoff.Sleep(ctx, mmapkeys.Settle) {
		return context.Cause(ctx)
	}
	return nil
}

// Line describes the store in the status; nil without one. st is what the key directory found, nil before it has read.
func (k KeyStore) Line(st *keydir.StoreStatus) *adminapi.KeyStore {
	if k.Geometry() == nil {
		return nil
	}
	out := &adminapi.KeyStore{Driver: storeDriver, Busy: true}
	if st != nil {
		out.Keys, out.Fill, out.Lacking, out.Busy, out.Error = st.Keys, st.Fill, st.Lacking, st.Strange, st.Err
	}
	return out
}

// Check judges what the key directory found in the store.
func (k KeyStore) Check(st *keydir.StoreStatus) health.Result {
	if k.Geometry() == nil || st == nil {
		return fine
	}
	files := filepath.Join(k.Master.PkiDir, mmapkeys.Keys) + "*"
	switch {
	case st.Err != "":
		return health.Result{
			Level: health.Fail, Reason: "minion keys are not synchronised: " + st.Err,
			Hint: "if the size of the store was changed: stop the salt-master, move " + files + " away and start the salt-master; saltclusterd writes the keys again",
		}
	case st.Lacking > 0:
		return health.Result{
			Level:  health.Warn,
			Reason: fmt.Sprintf("the salt-master's key store has no room for %d minion keys or their ids", st.Lacking),
			Hint:   "raise mmap_key_size or mmap_key_id_size; then, with the salt-master stopped, move " + files + " away",
		}
	case st.Fill > storeNearlyFull:
		return health.Result{
			Level: health.Warn, Reason: fmt.Sprintf("the salt-master's key store is %.0f %% full", 100*st.Fill),
			Hint: "raise mmap_key_size; then, with the salt-master stopped, move " + files + " away",
		}
	}
	return fine
}
