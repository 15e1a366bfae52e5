package daemon

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/sidecar/localmaster"
)

// storeDriver is what a master is configured for that has its keys in a store of its own.
const storeDriver = "mmap_key"

const (
	// configEvery is how often the master's configuration is read for the place of its keys.
	configEvery = 3 * time.Second
	// storeNearlyFull is the share of a store's slots from which on it is worth a warning.
	storeNearlyFull = 0.8
)

// keyStore says how the master's own key store is laid out; nil when it has its keys in files only.
func keyStore(c *localmaster.Config) *mmapkeys.Geometry {
	if c.Version.Major < 3008 || c.Text("keys.cache_driver") != storeDriver {
		return nil
	}
	g := mmapkeys.Configured(func(name string) int { return int(c.Int(name)) })
	return &g
}

// mirrored is the store that the key directory keeps in step with the files. Other hosts' mappings of a file on a network file
// system do not see what is written here.
func (d *Daemon) mirrored() *mmapkeys.Geometry {
	if d.shares() {
		return nil
	}
	return keyStore(d.master)
}

// findings lists what the configuration that the master has started with must not stay like.
func (d *Daemon) findings() []localmaster.Finding {
	master := cmp.Or(d.latest.Load(), d.master)
	out := append(localmaster.CheckDropIn(master), localmaster.CheckActors(master, d.cfg.Events.EveryMaster)...)
	if d.shares() && keyStore(master) != nil {
		out = append(out, localmaster.Finding{
			Option: "keys.cache_driver", Fatal: true,
			Message: "The salt-master keeps minion keys in its mmap_key store on a shared file system, where masters do not see what the others write.",
			Fix:     "Remove 'keys.cache_driver: mmap_key' from the master's configuration, or give each master a disk of its own (cluster_isolated_filesystem).",
		})
	}
	return out
}

// bank is one of the banks of the master's store; nil when it has none, or an unusable one, which the key directory says.
func (d *Daemon) bank(name string) *mmapkeys.Bank {
	g := d.mirrored()
	if g == nil {
		return nil
	}
	b, err := mmapkeys.NewBank(d.master.PkiDir, name, *g)
	if err != nil {
		return nil
	}
	return b
}

// placeHidden makes the pseudo minion known to a master that has a store, and seen by nobody.
func (d *Daemon) placeHidden(ctx context.Context, id, pub string) error {
	b := d.bank(mmapkeys.Keys)
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
