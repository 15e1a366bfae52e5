package identity

import (
	"errors"
	"fmt"
	"io/fs"

	"saltclusterd/fsync/ledger"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

// signingItem is the name in ledgers of what masters sign with, whatever the file is called on each.
const signingItem = "master_sign.pem"

// SigningKey returns what the master signs its public key with (master_sign_pubkey), nil when it does not, or has no
// such key.
func (k MasterKeys) SigningKey() ([]byte, error) {
	if !k.Master.Bool("master_sign_pubkey") {
		return nil, nil
	}
	text, err := k.ReadFile(k.Master, localmaster.SigningStem(k.Master)+".pem")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // with master_use_pubkey_signature it may be elsewhere
	}
	if err == nil {
		_, err = saltcrypt.ParseMasterKey(text)
	}
	if err != nil {
		return nil, fmt.Errorf("the local master's signing key: %w", err)
	}
	return text, nil
}

// SigningLedger returns what the master signs its public key with, as nodes compare it: nothing when it does not sign.
func (k MasterKeys) SigningLedger() (ledger.Ledger, error) {
	if k.Master.Bool("master_sign_pubkey") && k.Master.Bool("master_use_pubkey_signature") {
		return ledger.Ledger{Off: "the master has master_use_pubkey_signature: only the master knows which key it signs with"}, nil
	}
	text, err := k.SigningKey()
	if text == nil || err != nil {
		return ledger.Ledger{}, err
	}
	key, err := saltcrypt.ParseMasterKey(text)
	if err != nil {
		return ledger.Ledger{}, err
	}
	return ledger.Ledger{Items: map[string]string{signingItem: saltcrypt.Fingerprint(key.PublicText())}}, nil
}

// InstallSigningKey makes a key what the master signs its public key with, unless there is another that is not to be
// replaced (localmaster.ErrOtherSigningKey).
func (k MasterKeys) InstallSigningKey(private []byte, replace bool) (changed bool, backup string, err error) {
	key, err := saltcrypt.ParseMasterKey(private)
	if err != nil {
		return false, "", err
	}
	stem := localmaster.SigningStem(k.Master)
	old, err := k.ReadFile(k.Master, stem+".pem")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, "", err
	}
	if err == nil && !replace {
		if had, err := saltcrypt.ParseMasterKey(old); err != nil || !had.Public().Equal(key.Public()) {
			return false, "", localmaster.ErrOtherSigningKey
		}
	}
	if changed, backup, err = localmaster.InstallSigningKey(k.Master, private); err != nil {
		return changed, backup, err
	}
	stored, err := k.storeAs(stem, private)
	return changed || stored, backup, err
}
