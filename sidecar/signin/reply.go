package signin

import (
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

// replier builds replies.
type replier struct {
	identity    Identity
	pubSigner   func() PubSigner // Config.PubSigner
	publishPort int
	another     atomic.Pointer[Another] // nil but while the identity is changed
	pinned      func(id, pub string, p Pin)
}

// Another is a second identity of the cluster while one takes the place of the other: a minion that has pinned it is answered under
// it, so that those who know the new one and those who do not can both sign in.
type Another struct {
	Identity interface {
		Identity
		SignX931(msg []byte) ([]byte, error)
	}
	PubSigner PubSigner // as Config.PubSigner, for this identity

	mu    sync.Mutex
	epoch *epochs.Material
	sig   []byte // of epoch
}

// Pin is which key a minion has shown that it has pinned as its master's.
type Pin int

// What a minion may have pinned.
const (
	PinNone    Pin = iota // nothing yet: it takes the key that it is shown
	PinOurs               // the identity in force
	PinAnother            // the second one
	PinForeign            // neither: it refuses us
)

// sign returns the inner signature of an epoch (epochs.Material.Sig) under this identity.
func (a *Another) sign(m *epochs.Material) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.epoch != m {
		sig, err := epochs.Sign(a.Identity, m.KeyText)
		if err != nil {
			return nil, fmt.Errorf("sign epoch %d: %w", m.Number, err)
		}
		a.epoch, a.sig = m, sig
	}
	return a.sig, nil
}

// accept builds the signed reply that lets a minion in (salt/channel/server.py _auth): the epoch's AES key and the
// session key, each encrypted to the minion.
func (r *replier) accept(req saltwire.AuthRequest, key *minionKey, epoch *epochs.Material, session string) ([]byte, error) {
	token, pin, err := r.token(req, key.PublicKey)
	if err != nil {
		return nil, err
	}
	if r.pinned != nil {
		r.pinned(req.ID, req.Pub, pin)
	}
	identity, pubSigner, epochSig := r.identity, r.pubSigner(), epoch.Sig
	if another := r.another.Load(); another != nil && pin == PinAnother {
		identity, pubSigner = another.Identity, another.PubSigner
		if epochSig, err = another.sign(epoch); err != nil {
			return nil, err
		}
	}
	a := saltwire.AuthAccept{
		PubKey:      identity.PublicText(),
		PublishPort: r.publishPort,
		Sig:         epochSig,
		Nonce:       req.Nonce,
		Token:       token,
	}
	if a.AES, err = key.encrypt(sealAES, req.EncAlgo, epoch.KeyText); err != nil {
		return nil, fmt.Errorf("encrypt aes key: %w", err)
	}
	if a.Session, err = key.encrypt(sealSession, req.EncAlgo, session); err != nil {
		return nil, fmt.Errorf("encrypt session key: %w", err)
	}
	if pubSigner != nil {
		if a.PubSig, err = pubSigner.PubSig(req.SigAlgo); err != nil {
			return nil, fmt.Errorf("sign master.pub: %w", err)
		}
		a.HasPubSig = true
	}
	return signed(identity, saltwire.AppendAuthAccept(nil, a), req.SigAlgo)
}

// token proves to a minion that pinned our public key that we hold the private one: what it encrypted to the master
// goes back encrypted to the minion. One that does not decrypt is left out, as stock does; the minion then refuses us.
// The key that opens it is the one that the minion has pinned.
func (r *replier) token(req saltwire.AuthRequest, key *saltcrypt.PublicKey) ([]byte, Pin, error) {
	token, pin := r.opened(req)
	if token == nil {
		return nil, pin, nil
	}
	sealed, err := key.EncryptOAEP(req.EncAlgo, token)
	if err != nil {
		return nil, pin, fmt.Errorf("encrypt token: %w", err)
	}
	return sealed, pin, nil
}

func (r *replier) opened(req saltwire.AuthRequest) ([]byte, Pin) {
	if len(req.Token) == 0 {
		return nil, PinNone
	}
	if token, err := r.identity.DecryptOAEP(req.EncAlgo, req.Token); err == nil {
		return token, PinOurs
	}
	if another := r.another.Load(); another != nil {
		if token, err := another.Identity.DecryptOAEP(req.EncAlgo, req.Token); err == nil {
			return token, PinAnother
		}
	}
	return nil, PinForeign
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
	identity := r.identity
	if another := r.another.Load(); another != nil {
		if _, pin := r.opened(req); pin == PinAnother {
			identity = another.Identity
		}
	}
	return signed(identity, saltwire.AppendAuthRet(nil, true, req.Nonce), req.SigAlgo)
}

func signed(identity Identity, load []byte, algorithm string) ([]byte, error) {
	sig, err := identity.Sign(algorithm, load)
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
