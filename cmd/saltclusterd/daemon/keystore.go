package daemon

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

// storeDriver is what a master is configured for that has its keys in a store of its own.
const storeDriver = "mmap_key"

const (
	// configEvery is how often the master's configuration is read for the place of its keys.
	configEvery = 3 * time.Second
	// storePatience is how long the store's lock is waited for.
	storePatience = 5 * time.Second
	// storeNearlyFull is the share of a store's slots from which on it is worth a warning.
	storeNearlyFull = 0.8
)

// keyStore says how the master's own key store is laid out; nil when it has its keys in files only.
func keyStore(c *localmaster.Config) *mmapkeys.Geometry {
	if c.Version.Major < 3008 || c.Text("keys.cache_driver") != storeDriver {
		return nil
	}
	g, opt := mmapkeys.DefaultGeometry(), func(name string) int { return int(c.Int(name)) }
	return &mmapkeys.Geometry{
		Slots: cmp.Or(opt("mmap_key_size"), g.Slots), SlotSize: cmp.Or(opt("mmap_key_slot_size"), g.SlotSize),
		KeySize: cmp.Or(opt("mmap_key_id_size"), g.KeySize),
	}
}

// mirrored is the store that the key directory keeps in step with the files. Other hosts' mappings of a file on a network file
// system do not see what is written here.
func (d *Daemon) mirrored() *mmapkeys.Geometry {
	if d.shares() {
		return nil
	}
	return keyStore(d.master)
}

// findings lists what the master's configuration must not stay like.
func (d *Daemon) findings() []localmaster.Finding {
	out := localmaster.CheckDropIn(d.master)
	if d.shares() && keyStore(d.master) != nil {
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

// storedMasterKey returns one of the master's own keys from its store; nil when it is not there.
func (d *Daemon) storedMasterKey(name string) ([]byte, error) {
	b := d.bank(mmapkeys.MasterKeys)
	if b == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	e, ok, err := b.Get(ctx, name)
	if err != nil || !ok {
		return nil, err
	}
	if e.Damaged || len(e.Value) == 0 {
		return nil, fmt.Errorf("%s in the master's key store is damaged", name)
	}
	return e.Value, nil
}

// masterKeyFile reads one of the master's own keys where the master reads it.
func (d *Daemon) masterKeyFile(name string) ([]byte, error) {
	if text, err := d.storedMasterKey(name); text != nil || err != nil {
		return text, err
	}
	return os.ReadFile(filepath.Join(d.master.PkiDir, name))
}

// storeStem is the name, without ending, of the master's own key in its store (salt/crypt.py:MasterKeys._setup_keys).
func (d *Daemon) storeStem() string { return strings.TrimSuffix(d.master.ID, "_master") }

// masterIdentity returns the key pair that the master uses. One that is in its store counts, for the master does not look at files
// then; one that is only in files is put there as the cluster's identity.
func (d *Daemon) masterIdentity() (private, public []byte, err error) {
	for _, stem := range []string{d.storeStem(), "master"} {
		if private, err = d.storedMasterKey(stem + ".pem"); err != nil {
			return nil, nil, err
		}
		if private == nil {
			continue
		}
		key, err := saltcrypt.ParseMasterKey(private)
		if err != nil {
			return nil, nil, fmt.Errorf("%s.pem in the master's key store: %w", stem, err)
		}
		public = []byte(key.PublicText() + "\n")
		_, _, err = localmaster.InstallIdentity(d.master, private, public) // for the day when the master has files again
		return private, public, err
	}
	return localmaster.ReadIdentity(d.master)
}

// storeIdentity makes the cluster's key pair the one in the master's store, if it has one. A running master must be restarted then.
func (d *Daemon) storeIdentity(private []byte) (changed bool, err error) {
	b := d.bank(mmapkeys.MasterKeys)
	if b == nil {
		return false, nil
	}
	key, err := saltcrypt.ParseMasterKey(private)
	if err != nil {
		return false, err
	}
	stem := d.storeStem()
	old, err := d.storedMasterKey(stem + ".pem")
	if err == nil && old != nil {
		if had, err := saltcrypt.ParseMasterKey(old); err == nil && had.Public().Equal(key.Public()) {
			return false, nil
		}
	}
	changes := []mmapkeys.Change{
		{Key: stem + ".pem", Value: private}, {Key: stem + ".pub", Value: []byte(key.PublicText())},
	}
	if old != nil {
		at := time.Now().UTC().Format("20060102T150405Z")
		changes = append([]mmapkeys.Change{{Key: "saltclusterd-" + at + ".bak", Value: old}}, changes...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	for _, err := range b.Apply(ctx, changes) {
		if err != nil {
			return changed, fmt.Errorf("install the cluster's identity in the master's key store: %w", err)
		}
		changed = true
	}
	return changed, nil
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
		return fmt.Errorf("place the hidden key: %w", err)
	}
	if ok && !e.Damaged && !e.Listed && string(e.Value) == string(value) {
		return nil
	}
	if err := b.Apply(ctx, []mmapkeys.Change{{Key: id, Value: value, Hidden: true}})[0]; err != nil {
		return fmt.Errorf("place the hidden key: %w", err)
	}
	if !wait(ctx, mmapkeys.Settle) {
		return context.Cause(ctx)
	}
	return nil
}

// watchKeyStore reads the master's configuration again and again: when the master is about to have its keys in another place, or
// has, another process of this very program takes over, which knows that place.
func (s *service) watchKeyStore(ctx context.Context) {
	d := s.m.d
	seen, pause := 0, renewAgain
	for wait(ctx, configEvery) {
		c, err := localmaster.LoadConfig(d.master.Path, d.master.Version)
		if err != nil || sameStore(keyStore(c), keyStore(d.master)) && c.Text("keys.cache_driver") == d.master.Text("keys.cache_driver") {
			seen = 0
			continue
		}
		if seen++; seen < 2 { // a file may have been half written
			continue
		}
		s.m.log.Warn("the salt-master is configured for another key store", "reason", c.Text("keys.cache_driver"),
			"before", d.master.Text("keys.cache_driver"))
		_, err = d.Upgrade(ctx, adminapi.UpgradeRequest{}, func(step, message string) {
			s.m.log.Debug("renewed for the salt-master's key store", "op", step, "reason", message)
		})
		if err == nil {
			return
		}
		s.m.log.Warn("not renewed for the salt-master's key store", "err", err)
		if !wait(ctx, pause) {
			return
		}
		pause = min(2*pause, renewMost)
	}
}

func sameStore(a, b *mmapkeys.Geometry) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// keyStoreLine describes the master's own key store in the status; nil when it has none.
func (s *service) keyStoreLine() *adminapi.KeyStore {
	if s.m.d.mirrored() == nil {
		return nil
	}
	out := &adminapi.KeyStore{Driver: storeDriver, Busy: true}
	if st := s.dir.Store(); st != nil {
		out.Keys, out.Fill, out.Lacking, out.Busy, out.Error = st.Keys, st.Fill, st.Lacking, st.Strange, st.Err
	}
	return out
}

// checkKeyStore is about the master's own key store.
func (d *Daemon) checkKeyStore(context.Context) health.Result {
	m := d.current()
	if m == nil || m.svc == nil || d.mirrored() == nil {
		return fine
	}
	st := m.svc.dir.Store()
	if st == nil {
		st = &keydir.StoreStatus{}
	}
	files := filepath.Join(d.master.PkiDir, mmapkeys.Keys) + "*"
	switch {
	case st.Err != "":
		return health.Result{
			Level: health.Fail, Reason: "minion keys are not kept in step: " + st.Err,
			Hint: "if its size was changed: stop the salt-master, move " + files + " away and start it; the keys come back",
		}
	case st.Lacking > 0:
		return health.Result{
			Level: health.Warn, Reason: fmt.Sprintf("the salt-master's key store has no room for %d minion keys, or their ids", st.Lacking),
			Hint: "raise mmap_key_size or mmap_key_id_size; then, with the salt-master stopped, move " + files + " away",
		}
	case st.Fill > storeNearlyFull:
		return health.Result{
			Level: health.Warn, Reason: fmt.Sprintf("the salt-master's key store is %.0f %% full", 100*st.Fill),
			Hint: "raise mmap_key_size; then, with the salt-master stopped, move " + files + " away",
		}
	}
	return fine
}
