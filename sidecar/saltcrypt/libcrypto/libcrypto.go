package libcrypto

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"

	"saltclusterd/sidecar/saltcrypt"
)

var (
	// ErrNotBuilt means that the program was built without the tag libcrypto, or without cgo.
	ErrNotBuilt = errors.New("this program was built without OpenSSL")
	// ErrUnfit means that the host's library is missing, too old, or did not agree with Go.
	ErrUnfit = errors.New("OpenSSL is not used")
)

var (
	signatures  = map[string]crypto.Hash{saltcrypt.PKCS1v15SHA1: crypto.SHA1, saltcrypt.PKCS1v15SHA224: crypto.SHA224}
	encryptions = map[string]crypto.Hash{saltcrypt.OAEPSHA1: crypto.SHA1, saltcrypt.OAEPSHA224: crypto.SHA224}
)

// engine is one private key in a library.
type engine interface {
	sign(h crypto.Hash, digest []byte) ([]byte, error)        // PKCS#1 v1.5
	decrypt(h crypto.Hash, ciphertext []byte) ([]byte, error) // OAEP
	version() string
}

// Key is a MasterKey with the operations of sign-ins and publications done by OpenSSL. Safe for concurrent use.
type Key struct {
	*saltcrypt.MasterKey
	engine engine
	able   map[string]bool // algorithms in which it agreed with Go
}

// Accelerate loads the library and gives it the key. Errors: ErrNotBuilt, ErrUnfit; the caller goes on with m.
func Accelerate(m *saltcrypt.MasterKey) (*Key, error) {
	der := m.DER()
	defer clear(der)
	e, err := load(der)
	if err != nil {
		return nil, err
	}
	return tried(m, e)
}

// tried finds out what an engine can do as Go does it.
func tried(m *saltcrypt.MasterKey, e engine) (*Key, error) {
	k := &Key{MasterKey: m, engine: e, able: map[string]bool{}}
	msg := []byte("the same as Go?")
	for algo, h := range signatures {
		want, err := m.Sign(algo, msg)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
		}
		got, err := e.sign(h, digest(h, msg))
		k.able[algo] = err == nil && bytes.Equal(got, want)
	}
	for algo, h := range encryptions {
		sealed, err := m.Public().EncryptOAEP(algo, msg)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
		}
		got, err := e.decrypt(h, sealed)
		k.able[algo] = err == nil && bytes.Equal(got, msg)
	}
	for _, able := range k.able {
		if able {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%w: %s agrees with Go in no algorithm", ErrUnfit, e.version())
}

// Version is what the library calls itself.
func (k *Key) Version() string { return k.engine.version() }

// Left are the algorithms that Go does, because the library does not.
func (k *Key) Left() (names []string) {
	for _, algo := range []string{saltcrypt.PKCS1v15SHA1, saltcrypt.PKCS1v15SHA224, saltcrypt.OAEPSHA1, saltcrypt.OAEPSHA224} {
		if !k.able[algo] {
			names = append(names, algo)
		}
	}
	return names
}

// Sign is MasterKey.Sign.
func (k *Key) Sign(algo string, data []byte) ([]byte, error) {
	if h, ok := signatures[algo]; ok && k.able[algo] {
		if sig, err := k.engine.sign(h, digest(h, data)); err == nil {
			return sig, nil
		}
	}
	return k.MasterKey.Sign(algo, data)
}

// DecryptOAEP is MasterKey.DecryptOAEP.
func (k *Key) DecryptOAEP(algo string, ciphertext []byte) ([]byte, error) {
	if h, ok := encryptions[algo]; ok && k.able[algo] {
		if msg, err := k.engine.decrypt(h, ciphertext); err == nil {
			return msg, nil
		}
	}
	return k.MasterKey.DecryptOAEP(algo, ciphertext)
}

func digest(h crypto.Hash, data []byte) []byte {
	d := h.New()
	d.Write(data)
	return d.Sum(nil)
}
