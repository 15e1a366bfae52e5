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

// SecondIdentity is an Identity that signs the digest of the AES key as well (salt/crypt.py private_encrypt).
type SecondIdentity interface {
	Identity
	SignX931(msg []byte) ([]byte, error)
}

// Another is a second identity of the cluster while one takes the place of the other: a minion that has pinned it is
// answered under it, so that those who know the new one and those who do not can both sign in.
type Another struct {
	Identity  SecondIdentity
	PubSigner PubSigner // as Config.PubSigner, but of this identity

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

// signEpoch returns the inner signature of an epoch (epochs.Material.Sig) under this identity.
func (a *Another) signEpoch(m *epochs.Material) ([]byte, error) {
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

// acceptance is a sign-in whose minion is let in, and the reply to it.
type acceptance struct {
	req     saltwire.AuthRequest
	key     *minionKey
	epoch   *epochs.Material
	session string // the session key, as text

	token []byte // the minion's, decrypted; nil: it sent none, or it does not decrypt
	pin   Pin
	reply []byte
	err   error
}

// buildAccepted builds the signed reply that lets a minion in (salt/channel/server.py _auth): the epoch's AES key and
// the session key, each encrypted to the minion.
func (r *replier) buildAccepted(a *acceptance) {
	another := r.another.Load() // one for all of it: a minion that has pinned that identity is answered under it
	r.openToken(a, another)
	if r.pinned != nil {
		r.pinned(a.req.ID, a.req.Pub, a.pin)
	}
	load, identity, err := r.buildLoad(a, another)
	if err != nil {
		a.err = err
		return
	}
	a.reply, a.err = signReply(identity, load, a.req.SigAlgo)
}

// buildLoad returns what is to be signed of a reply, and the identity that signs it.
func (r *replier) buildLoad(a *acceptance, another *Another) ([]byte, Identity, error) {
	identity, pubSigner, epochSig := r.identity, r.pubSigner(), a.epoch.Sig
	if another != nil && a.pin == PinAnother {
		sig, err := another.signEpoch(a.epoch)
		if err != nil {
			return nil, nil, err
		}
		identity, pubSigner, epochSig = another.Identity, another.PubSigner, sig
	}
	accept := saltwire.AuthAccept{
		PubKey:      identity.PublicText(),
		PublishPort: r.publishPort,
		Sig:         epochSig,
		Nonce:       a.req.Nonce,
	}
	var err error
	// The token proves to a minion that pinned our public key that we hold the private one: what it encrypted to the
	// master goes back encrypted to the minion. One that does not decrypt, or does not fit into what the minion's key
	// encrypts, is left out, as stock does; the minion then refuses us.
	if a.token != nil {
		if token, err := a.key.EncryptOAEP(a.req.EncAlgo, a.token); err == nil {
			accept.Token = token
		}
	}
	if accept.AES, err = a.key.encryptSecret(sealAES, a.req.EncAlgo, a.epoch.KeyText); err != nil {
		return nil, nil, fmt.Errorf("encrypt aes key: %w", err)
	}
	if accept.Session, err = a.key.encryptSecret(sealSession, a.req.EncAlgo, a.session); err != nil {
		return nil, nil, fmt.Errorf("encrypt session key: %w", err)
	}
	if pubSigner != nil {
		if accept.PubSig, err = pubSigner.PubSig(a.req.SigAlgo); err != nil {
			return nil, nil, fmt.Errorf("sign master.pub: %w", err)
		}
		accept.HasPubSig = true
	}
	return saltwire.AppendAuthAccept(nil, accept), identity, nil
}

// openToken decrypts what a minion has encrypted to its master. The key that decrypts it is the one that the minion
// has pinned.
func (r *replier) openToken(a *acceptance, another *Another) {
	if len(a.req.Token) == 0 {
		a.pin = PinNone
		return
	}
	var err error
	if a.token, err = r.identity.DecryptOAEP(a.req.EncAlgo, a.req.Token); err == nil {
		a.pin = PinOurs
		return
	}
	a.token, a.pin = nil, PinForeign
	if another != nil {
		if token, err := another.Identity.DecryptOAEP(a.req.EncAlgo, a.req.Token); err == nil {
			a.token, a.pin = token, PinAnother
		}
	}
}

// measureCost measures what the private operations of a reply take here: one that decrypts a token, one that signs.
func (r *replier) measureCost() (time.Duration, error) {
	began := time.Now()
	for range 2 {
		if _, err := r.identity.Sign(saltcrypt.PKCS1v15SHA1, []byte("what does it cost?")); err != nil {
			return 0, fmt.Errorf("measure a signature: %w", err)
		}
	}
	return time.Since(began), nil
}

// buildPending builds the signed reply "your key waits for acceptance".
func (r *replier) buildPending(req saltwire.AuthRequest) ([]byte, error) {
	identity := r.identity
	if another := r.another.Load(); another != nil {
		a := &acceptance{req: req}
		if r.openToken(a, another); a.pin == PinAnother {
			identity = another.Identity
		}
	}
	return signReply(identity, saltwire.AppendAuthRet(nil, true, req.Nonce), req.SigAlgo)
}

func signReply(identity Identity, load []byte, algorithm string) ([]byte, error) {
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
