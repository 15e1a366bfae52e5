package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

// maxKeyFile bounds what is read of a key or a signature of the master's own.
const maxKeyFile = 64 << 10

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

// masterKeyFile reads one of the master's own keys where a master of that configuration reads it.
func (d *Daemon) masterKeyFile(master *localmaster.Config, name string) ([]byte, error) {
	if text, err := d.storedMasterKey(name); text != nil || err != nil {
		return text, err
	}
	path := filepath.Join(master.PkiDir, name)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(text) > maxKeyFile {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxKeyFile)
	}
	return text, err
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

// masterFingerprint returns the fingerprint of the key that the local master uses, or "" without one.
func (d *Daemon) masterFingerprint() (string, error) {
	var private []byte
	for _, stem := range []string{d.storeStem(), "master"} {
		text, err := d.storedMasterKey(stem + ".pem")
		if err != nil {
			return "", err
		}
		if private == nil {
			private = text
		}
	}
	if private == nil {
		var err error
		if private, _, err = localmaster.ReadIdentity(d.master); errors.Is(err, fs.ErrNotExist) {
			return "", nil
		} else if err != nil {
			return "", err
		}
	}
	key, err := saltcrypt.ParseMasterKey(private)
	if err != nil {
		return "", fmt.Errorf("the local master's identity: %w", err)
	}
	return saltcrypt.Fingerprint(key.PublicText()), nil
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
