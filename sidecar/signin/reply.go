package signin

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// Identity is the cluster's RSA identity (saltcrypt.MasterKey).
type Identity interface {
	Sign(algorithm string, data []byte) ([]byte, error)
	DecryptOAEP(algorithm string, ciphertext []byte) ([]byte, error)
	PublicText() string
}

// PubSigner gives the signature over the master's public key for `master_sign_pubkey: True`: either the text of the
// precomputed signature file, or one made with master_sign.pem under the minion's algorithm.
type PubSigner interface {
	PubSig(algorithm string) (string, error)
}

// replier builds replies; it holds nothing that changes.
type replier struct {
	identity    Identity
	pubSigner   PubSigner // nil: master_sign_pubkey is off
	publishPort int
}

// accept builds the signed reply that lets a minion in (salt/channel/server.py _auth): the epoch's AES key and the
// session key, each encrypted to the minion.
func (r *replier) accept(req saltwire.AuthRequest, key *saltcrypt.PublicKey, epoch *epochs.Material, session saltcrypt.Key) ([]byte, error) {
	a := saltwire.AuthAccept{
		PubKey:      r.identity.PublicText(),
		PublishPort: r.publishPort,
		Sig:         epoch.Sig,
		Nonce:       req.Nonce,
	}
	var err error
	if a.AES, err = key.EncryptOAEP(req.EncAlgo, []byte(epoch.KeyText)); err != nil {
		return nil, fmt.Errorf("encrypt aes key: %w", err)
	}
	if a.Session, err = key.EncryptOAEP(req.EncAlgo, []byte(session.Text())); err != nil {
		return nil, fmt.Errorf("encrypt session key: %w", err)
	}
	if a.Token, err = r.token(req, key); err != nil {
		return nil, err
	}
	if r.pubSigner != nil {
		if a.PubSig, err = r.pubSigner.PubSig(req.SigAlgo); err != nil {
			return nil, fmt.Errorf("sign master.pub: %w", err)
		}
		a.HasPubSig = true
	}
	return r.signed(saltwire.AppendAuthAccept(nil, a), req.SigAlgo)
}

// token proves to a minion that pinned our public key that we hold the private one: what it encrypted to the master
// goes back encrypted to the minion. One that does not decrypt is left out, as stock does; the minion then refuses us.
func (r *replier) token(req saltwire.AuthRequest, key *saltcrypt.PublicKey) ([]byte, error) {
	if len(req.Token) == 0 {
		return nil, nil
	}
	token, err := r.identity.DecryptOAEP(req.EncAlgo, req.Token)
	if err != nil {
		return nil, nil //nolint:nilerr // a token for another master's key is the minion's matter
	}
	sealed, err := key.EncryptOAEP(req.EncAlgo, token)
	if err != nil {
		return nil, fmt.Errorf("encrypt token: %w", err)
	}
	return sealed, nil
}

// cost measures what the private operations of a reply take here: one that decrypts a token, one that signs.
func (r *replier) cost() (time.Duration, error) {
	began := time.Now()
	for range 2 {
		if _, err := r.identity.Sign(saltcrypt.PKCS1v15SHA1, []byte("what does it cost?")); err != nil {
			return 0, fmt.Errorf("measure a signature: %w", err)
		}
	}
	return time.Since(began), nil
}

// pending builds the signed reply "your key waits for acceptance".
func (r *replier) pending(req saltwire.AuthRequest) ([]byte, error) {
	return r.signed(saltwire.AppendAuthRet(nil, true, req.Nonce), req.SigAlgo)
}

func (r *replier) signed(load []byte, algorithm string) ([]byte, error) {
	sig, err := r.identity.Sign(algorithm, load)
	if err != nil {
		return nil, fmt.Errorf("sign reply: %w", err)
	}
	return saltwire.AppendSigned(nil, load, sig), nil
}

// FixedPubSig is a precomputed signature (the master's `master_use_pubkey_signature`).
type FixedPubSig string

// PubSig implements PubSigner.
func (f FixedPubSig) PubSig(string) (string, error) {
	if f == "" {
		return "", errors.New("master_pubkey_signature is empty")
	}
	return string(f), nil
}

// ComputedPubSig signs the master's public key with master_sign.pem once per algorithm.
func ComputedPubSig(signKey Identity, masterPub string) (PubSigner, error) {
	sigs := computedPubSig{}
	for _, algorithm := range []string{saltcrypt.PKCS1v15SHA1, saltcrypt.PKCS1v15SHA224} {
		sig, err := signKey.Sign(algorithm, []byte(masterPub))
		if err != nil {
			return nil, fmt.Errorf("sign master.pub with %s: %w", algorithm, err)
		}
		sigs[algorithm] = base64.StdEncoding.EncodeToString(sig) + "\n" // binascii.b2a_base64 ends with a line feed
	}
	return sigs, nil
}

type computedPubSig map[string]string

// PubSig implements PubSigner.
func (c computedPubSig) PubSig(algorithm string) (string, error) {
	sig, ok := c[algorithm]
	if !ok {
		return "", fmt.Errorf("no signature under %q", algorithm)
	}
	return sig, nil
}
