package identity

import (
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/sidecar/localmaster"
)

// LateMaster is the local master as a node that joins a cluster needs it (joining.Master). Without a membership nothing
// follows the master's options, and it is restarted after the join: what it will start with counts.
type LateMaster struct {
	Keys     func() MasterKeys
	Geometry func() *mmapkeys.Geometry
}

// keys returns the keys by the configuration in the file, that of before if it cannot be read.
func (m LateMaster) keys() MasterKeys {
	k := m.Keys()
	if next, err := localmaster.LoadConfig(k.Master.Path, k.Master.Version); err == nil {
		k.Master = next
	}
	return k
}

// Identity returns the key pair that the master uses.
func (m LateMaster) Identity() (private, public []byte, err error) { return m.keys().Identity() }

// Fingerprint returns the fingerprint of that key pair.
func (m LateMaster) Fingerprint() (string, error) { return m.keys().Fingerprint() }

// InstallIdentity writes a key pair to the master's files.
func (m LateMaster) InstallIdentity(private, public []byte) (changed bool, backup string, err error) {
	return localmaster.InstallIdentity(m.keys().Master, private, public)
}

// StoreIdentity writes a key pair to the master's key store, if it has one.
func (m LateMaster) StoreIdentity(private []byte) (bool, error) { return m.keys().Store(private) }

// Signs says that the master signs its public key (master_sign_pubkey).
func (m LateMaster) Signs() bool { return m.keys().Master.Bool("master_sign_pubkey") }

// InstallSigningKey writes what the master signs its public key with.
func (m LateMaster) InstallSigningKey(private []byte, replace bool) (changed bool, backup string, err error) {
	return m.keys().InstallSigningKey(private, replace)
}

// PKIDir returns the directory of the master's minion keys.
func (m LateMaster) PKIDir() string { return m.keys().Master.PkiDir }

// KeyStore returns the layout of the master's key store, nil without one.
func (m LateMaster) KeyStore() *mmapkeys.Geometry { return m.Geometry() }
