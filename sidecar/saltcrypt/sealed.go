package saltcrypt

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
)

// ErrSealed says that something was not sealed for this key, or was changed since.
var ErrSealed = errors.New("not sealed for this key, or damaged")

const (
	sealedKey = 32 // AES-256
	maxSealed = 64 << 10
)

// SealFor seals what is too long for RSA alone: an AES-256-GCM key for the owner of p (OAEP with SHA-256), then the
// text under it. What it is for is bound to it by label. Salt knows nothing of this form.
func SealFor(p *PublicKey, label string, plain []byte) ([]byte, error) {
	key := make([]byte, sealedKey)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	head, err := p.encryptOAEP(crypto.SHA256, key, []byte(label))
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", label, err)
	}
	aead, err := newSealed(key)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails (crypto/rand)
	return aead.Seal(append(head, nonce...), nonce, plain, []byte(label)), nil
}

// DecodeSealed is SealFor backwards. Errors: ErrSealed.
func (m *MasterKey) DecodeSealed(label string, sealed []byte) ([]byte, error) {
	n := m.key.Size()
	if len(sealed) < n || len(sealed) > maxSealed {
		return nil, ErrSealed
	}
	key, err := rsa.DecryptOAEP(sha256.New(), nil, m.key, sealed[:n], []byte(label))
	if err != nil || len(key) != sealedKey {
		return nil, ErrSealed
	}
	aead, err := newSealed(key)
	if err != nil {
		return nil, err
	}
	body := sealed[n:]
	if len(body) < aead.NonceSize() {
		return nil, ErrSealed
	}
	plain, err := aead.Open(nil, body[:aead.NonceSize()], body[aead.NonceSize():], []byte(label))
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}

func newSealed(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("cipher: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("cipher: %w", err)
	}
	return aead, nil
}
