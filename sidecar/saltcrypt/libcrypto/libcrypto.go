package libcrypto

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"sync/atomic"

	"saltclusterd/sidecar/saltcrypt"
)

// ErrUnavailable means that the host's library is missing, too old, or differs from Go.
var ErrUnavailable = errors.New("OpenSSL is not used")

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

// Key is a MasterKey whose operations for sign-ins and publications are done by OpenSSL. Safe for concurrent use.
type Key struct {
	*saltcrypt.MasterKey
	engine engine
	able   map[string]bool // algorithms in which it agreed with Go
	faults atomic.Uint64
}

// Load loads the host's library. Errors: ErrUnavailable.
func Load() error {
	_, err := load()
	return err
}

// Accelerate gives m to the host's library and compares it with Go. Errors: ErrUnavailable; the caller uses m itself.
func Accelerate(m *saltcrypt.MasterKey) (*Key, error) {
	der := m.DER()
	defer clear(der)
	e, err := newEngine(der)
	if err != nil {
		return nil, err
	}
	return compare(m, e)
}

// compare finds the algorithms in which an engine does what Go does.
func compare(m *saltcrypt.MasterKey, e engine) (*Key, error) {
	k := &Key{MasterKey: m, engine: e, able: map[string]bool{}}
	msg := []byte("the same as Go?")
	var failed error
	for algo, h := range signatures {
		want, err := m.Sign(algo, msg)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		got, err := e.sign(h, digest(h, msg))
		k.able[algo] = err == nil && bytes.Equal(got, want)
		failed = errors.Join(failed, err)
	}
	for algo, h := range encryptions {
		sealed, err := m.Public().EncryptOAEP(algo, msg)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		got, err := e.decrypt(h, sealed)
		k.able[algo] = err == nil && bytes.Equal(got, msg)
		failed = errors.Join(failed, err)
	}
	if len(k.Left()) == len(k.able) {
		if failed == nil {
			failed = errors.New("its results differ")
		}
		return nil, fmt.Errorf("%w: %s agrees with Go in no algorithm: %w", ErrUnavailable, e.version(), failed)
	}
	return k, nil
}

// Version is what the library calls itself.
func (k *Key) Version() string { return k.engine.version() }

// Faults counts signatures that were wrong. Each was discarded and made again by Go.
func (k *Key) Faults() uint64 { return k.faults.Load() }

// Left names the algorithms that Go does, because the library does not.
func (k *Key) Left() (names []string) {
	for _, algo := range []string{saltcrypt.PKCS1v15SHA1, saltcrypt.PKCS1v15SHA224, saltcrypt.OAEPSHA1,
		saltcrypt.OAEPSHA224} {
		if !k.able[algo] {
			names = append(names, algo)
		}
	}
	return names
}

// Sign is MasterKey.Sign.
func (k *Key) Sign(algo string, data []byte) ([]byte, error) {
	if h, ok := signatures[algo]; ok && k.able[algo] {
		sum := digest(h, data)
		if sig, err := k.engine.sign(h, sum); err == nil {
			if k.Public().VerifyDigest(h, sum, sig) == nil {
				return sig, nil
			}
			k.faults.Add(1)
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

// usable says whether a version (OpenSSL_version_num, 0xMNN00PP0) may be used. 3.0.4 writes beyond its memory in
// these very operations on processors with AVX-512 IFMA (CVE-2022-2274).
func usable(version uint) bool { return version>>28 == 3 && version>>4 != 0x3000004 }

// cString is text up to its NUL.
func cString(text []byte) string {
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text)
}
