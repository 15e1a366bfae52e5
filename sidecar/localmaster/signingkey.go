package localmaster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrOtherSigningKey means that a master signs its public key with another key, which stays.
var ErrOtherSigningKey = errors.New("localmaster: the master has another signing key")

// SigningStem is the name, without ending, of the files of what the master signs its public key with
// (master_sign_pubkey).
func SigningStem(cfg *Config) string { return cfg.Text("master_sign_key_name") }

// InstallSigningKey makes a private key what the master signs its public key with: master_sign.pem (0400) and
// master_sign.pub (0644) in pki_dir, as a stock master would make them. Nothing is touched when it has the pair;
// another private key is kept beside as InstallIdentity keeps the master's. A running master must be restarted.
func InstallSigningKey(cfg *Config, private []byte) (changed bool, backup string, err error) {
	in, err := newIdentity(cfg, private, nil)
	if err != nil {
		return false, "", err
	}
	in.stem = SigningStem(cfg)
	if in.stem == "" || in.stem != filepath.Base(in.stem) || strings.HasPrefix(in.stem, ".") {
		return false, "", fmt.Errorf("%w: master_sign_key_name %q cannot name a key file", ErrIdentity, in.stem)
	}
	if in.root, err = os.OpenRoot(cfg.PkiDir); err != nil {
		return false, "", fmt.Errorf("install signing key: %w", err)
	}
	defer in.root.Close()
	changed, backup, err = in.installSigning()
	if err != nil {
		return changed, backup, fmt.Errorf("install signing key in %s: %w", cfg.PkiDir, err)
	}
	return changed, backup, nil
}

func (in *identity) installSigning() (changed bool, backup string, err error) {
	if backup, err = in.backupKey(in.stem + ".pem"); err != nil {
		return false, "", err
	}
	for _, step := range []func() (bool, error){in.putPrivate, in.putPublic} {
		did, err := step()
		changed = changed || did
		if err != nil {
			return changed, backup, err
		}
	}
	return changed, backup, nil
}
