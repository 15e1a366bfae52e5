package identity

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

// maxKeyFile is the largest size of a file with a key or a signature of the master, in bytes.
const maxKeyFile = 64 << 10

// errDamaged is an entry of the store that cannot be a key.
var errDamaged = errors.New("is damaged")

// storeTimeout is how long the store's lock is waited for.
const storeTimeout = 5 * time.Second

// MasterKeys are the local master's own keys, in its store if it has one and in files otherwise.
type MasterKeys struct {
	Master *localmaster.Config
	Bank   func() *mmapkeys.Bank // of its own keys in the store; nil without one
}

// readStored returns one of the keys from the store, or nil when it is not there.
func (k MasterKeys) readStored(name string) ([]byte, error) {
	b := k.Bank()
	if b == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	e, ok, err := b.Get(ctx, name)
	if err != nil || !ok {
		return nil, err
	}
	if e.Damaged || len(e.Value) == 0 {
		return nil, fmt.Errorf("%s in the master's key store %w", name, errDamaged)
	}
	return e.Value, nil
}

// ReadFile reads a key or signature from where a master with the given configuration reads it.
func (k MasterKeys) ReadFile(master *localmaster.Config, name string) ([]byte, error) {
	if text, err := k.readStored(name); text != nil || err != nil {
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

// stem is the name, without ending, of the master's own key in its store (salt/crypt.py:MasterKeys._setup_keys).
func (k MasterKeys) stem() string { return strings.TrimSuffix(k.Master.ID, "_master") }

// Identity returns the key pair that the master uses. A master with a pair in its store ignores files; that pair is
// written to its files.
func (k MasterKeys) Identity() (private, public []byte, err error) {
	for _, stem := range []string{k.stem(), "master"} {
		if private, err = k.readStored(stem + ".pem"); err != nil {
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
		_, _, err = localmaster.InstallIdentity(k.Master, private, public) // in case the master is configured for files later
		return private, public, err
	}
	return localmaster.ReadIdentity(k.Master)
}

// Fingerprint returns the fingerprint of the key that the master uses, or "" when it has none.
func (k MasterKeys) Fingerprint() (string, error) {
	var private []byte
	for _, stem := range []string{k.stem(), "master"} {
		text, err := k.readStored(stem + ".pem")
		if err != nil {
			return "", err
		}
		if private == nil {
			private = text
		}
	}
	if private == nil {
		var err error
		if private, _, err = localmaster.ReadIdentity(k.Master); errors.Is(err, fs.ErrNotExist) {
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

// Store puts the cluster's key pair into the master's store, if it has one. A running master must be restarted when
// that changed something.
func (k MasterKeys) Store(private []byte) (changed bool, err error) {
	return k.storeAs(k.stem(), private)
}

// storeAs puts a key pair into the master's store, if it has one, under a name without ending.
func (k MasterKeys) storeAs(stem string, private []byte) (changed bool, err error) {
	b := k.Bank()
	if b == nil {
		return false, nil
	}
	key, err := saltcrypt.ParseMasterKey(private)
	if err != nil {
		return false, err
	}
	old, err := k.readStored(stem + ".pem")
	if err != nil && !errors.Is(err, errDamaged) { // a key that could not be read would be replaced without a copy
		return false, fmt.Errorf("read the master's key store: %w", err)
	}
	if old != nil {
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
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	for _, err := range b.Apply(ctx, changes) {
		if err != nil {
			return changed, fmt.Errorf("install the cluster's key in the master's key store: %w", err)
		}
		changed = true
	}
	return changed, nil
}
