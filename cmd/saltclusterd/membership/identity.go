package membership

import (
	"fmt"
	"os"
	"path/filepath"

	"saltclusterd/durable"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltcrypt"
)

// IdentityPaths returns the paths of the cluster's key pair in cluster_pki_dir. A witness has the public key only.
func IdentityPaths(pkiDir string) (private, public string) {
	return filepath.Join(pkiDir, "cluster.pem"), filepath.Join(pkiDir, "cluster.pub")
}

// WriteIdentity stores the cluster's key pair.
func WriteIdentity(pkiDir string, private, public []byte) error {
	path, _ := IdentityPaths(pkiDir)
	if err := durable.WriteFile(path, private, 0o400); err != nil {
		return err
	}
	return WritePublicIdentity(pkiDir, public)
}

// WritePublicIdentity stores the cluster's public key. A witness has no other part of the identity.
func WritePublicIdentity(pkiDir string, public []byte) error {
	_, path := IdentityPaths(pkiDir)
	return durable.WriteFile(path, public, 0o644)
}

// ReadPublicIdentity returns the clean text of the cluster's public key, as a witness has it.
func ReadPublicIdentity(pkiDir string) (string, error) {
	_, path := IdentityPaths(pkiDir)
	public, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the cluster's identity: %w", err)
	}
	return saltcrypt.CleanKey(string(public)), nil
}

// ReadIdentity returns the cluster's key pair. A public key that does not match is replaced: a change was interrupted
// between the two files.
func ReadIdentity(pkiDir string) (key *saltcrypt.MasterKey, private, public []byte, err error) {
	privatePath, publicPath := IdentityPaths(pkiDir)
	if private, err = os.ReadFile(privatePath); err != nil {
		return nil, nil, nil, fmt.Errorf("read the cluster's identity: %w", err)
	}
	if public, err = os.ReadFile(publicPath); err != nil {
		return nil, nil, nil, fmt.Errorf("read the cluster's identity: %w", err)
	}
	if key, err = saltcrypt.ParseMasterKey(private); err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", privatePath, err)
	}
	if saltcrypt.CleanKey(string(public)) != key.PublicText() {
		public = []byte(key.PublicText())
		return key, private, public, WritePublicIdentity(pkiDir, public)
	}
	return key, private, public, nil
}

// WitnessCannot is the error of what needs the cluster's private key.
func WitnessCannot(what string) error {
	return adminapi.Errorf(adminapi.CodeRefused, "run it on a node with a salt-master",
		"a witness does not have the cluster's identity, so it cannot %s", what)
}
