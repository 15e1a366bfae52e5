package localmaster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"saltclusterd/sidecar/saltcrypt"
)

// hiddenKeyFile is the pseudo minion's private key in HiddenOptions.KeyDir.
const hiddenKeyFile = "hidden.pem"

// loadKey loads the pseudo minion's private key and makes one the first time, or when the file is damaged.
func (h *Hidden) loadKey() (*saltcrypt.MasterKey, error) {
	if err := os.MkdirAll(h.o.KeyDir, 0o700); err != nil {
		return nil, fmt.Errorf("saltclusterd's own key: %w", err)
	}
	root, err := os.OpenRoot(h.o.KeyDir)
	if err != nil {
		return nil, fmt.Errorf("saltclusterd's own key: %w", err)
	}
	defer root.Close()
	text, err := root.ReadFile(hiddenKeyFile)
	if err == nil {
		key, perr := saltcrypt.ParseMasterKey(text)
		if perr == nil {
			return key, nil
		}
		h.o.Logger.Warn("hidden key is damaged, making another", "path", filepath.Join(h.o.KeyDir, hiddenKeyFile), "err",
			perr)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("saltclusterd's own key: %w", err)
	}
	key, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		return nil, fmt.Errorf("saltclusterd's own key: %w", err)
	}
	f := newFile{name: hiddenKeyFile, data: key.PEM(), mode: 0o600, owner: Unowned, sync: true}
	if err := f.writeIn(root); err != nil {
		return nil, fmt.Errorf("saltclusterd's own key: %w", err)
	}
	return key, nil
}

// acceptKey places the public key among the accepted ones and takes it out of every other state. Each of the
// directories may be a link to elsewhere, as where masters have shared them.
func (h *Hidden) acceptKey(key *saltcrypt.MasterKey) error {
	owner, err := h.cfg.Owner()
	if err != nil {
		return err
	}
	for _, state := range []string{"minions_pre", "minions_rejected", "minions_denied"} {
		if err := os.Remove(filepath.Join(h.cfg.PkiDir, state, h.o.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("put saltclusterd's own key into the salt-master's pki_dir: %w", err)
		}
	}
	accepted, err := os.OpenRoot(filepath.Join(h.cfg.PkiDir, "minions"))
	if err != nil {
		return fmt.Errorf("put saltclusterd's own key into the salt-master's pki_dir: the master has not made its directories yet: %w", err)
	}
	defer accepted.Close()
	if have, err := accepted.ReadFile(h.o.ID); err == nil && saltcrypt.CleanKey(string(have)) == key.PublicText() {
		return nil
	}
	f := newFile{name: h.o.ID, data: []byte(key.PublicText()), mode: 0o644, owner: owner}
	if err := f.writeIn(accepted); err != nil {
		return fmt.Errorf("put saltclusterd's own key into the salt-master's pki_dir: %w", err)
	}
	return nil
}
