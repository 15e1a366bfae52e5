package masterlink

import (
	"cmp"
	"errors"
	"fmt"

	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/signin"
)

// ReadPubSigner reads what `master_sign_pubkey: True` needs: the precomputed signature when the master uses one, else
// the signing key (salt/crypt.py MasterKeys). It returns nil when the option is off. readKey reads one of the master's
// own keys where a master of a configuration reads it.
func ReadPubSigner(
	readKey func(of *localmaster.Config, name string) ([]byte, error), master *localmaster.Config, masterPub string,
) (signin.PubSigner, error) {
	if !master.Bool("master_sign_pubkey") {
		return nil, nil
	}
	if master.Bool("master_use_pubkey_signature") {
		name := cmp.Or(master.Text("master_pubkey_signature"), master.ID+"_pubkey_signature") // 3008's default is None
		text, err := readKey(master, name)
		sig := saltcrypt.CleanKey(string(text))
		if err == nil && sig == "" {
			err = errors.New(name + " is empty")
		}
		if err != nil {
			return nil, fmt.Errorf("master_use_pubkey_signature: %w: salt-key --gen-signature makes it", err)
		}
		return signin.FixedPubSig(sig), nil
	}
	name := master.Text("master_sign_key_name") + ".pem"
	pem, err := readKey(master, name)
	if err != nil {
		return nil, fmt.Errorf("master_sign_pubkey: %w: start the salt-master once so that it makes the key, "+
			"or copy it from another node", err)
	}
	key, err := saltcrypt.ParseMasterKey(pem)
	if err != nil {
		return nil, fmt.Errorf("master_sign_pubkey: %s: %w", name, err)
	}
	return signin.ComputedPubSig(key, masterPub)
}
