package archive

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
)

const (
	kdf           = "pbkdf2-sha256"
	iterations    = 600_000
	MaxIterations = 5_000_000 // a file that asks for more wants our time
	saltSize      = 16
	nonceSize     = 12
	keySize       = 32
)

// Sealing is how a body was encrypted.
type Sealing struct {
	KDF        string `json:"kdf"`
	Iterations int    `json:"iterations"`
	Salt       []byte `json:"salt"`
	Nonce      []byte `json:"nonce"`
}

func newSealing() *Sealing {
	s := &Sealing{KDF: kdf, Iterations: iterations, Salt: make([]byte, saltSize), Nonce: make([]byte, nonceSize)}
	_, _ = rand.Read(s.Salt) // never fails (crypto/rand)
	_, _ = rand.Read(s.Nonce)
	return s
}

func (s *Sealing) check() error {
	switch {
	case s.KDF != kdf:
		return fmt.Errorf("%w: it is sealed with %.20q", ErrVersion, s.KDF)
	case s.Iterations < 1 || s.Iterations > MaxIterations || len(s.Salt) != saltSize || len(s.Nonce) != nonceSize:
		return fmt.Errorf("%w: sealing", ErrFormat)
	}
	return nil
}

func (s *Sealing) aead(passphrase []byte) (cipher.AEAD, error) {
	key, err := pbkdf2.Key(sha256.New, string(passphrase), s.Salt, s.Iterations, keySize)
	if err != nil {
		return nil, fmt.Errorf("key of the snapshot: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("key of the snapshot: %w", err)
	}
	return cipher.NewGCM(block)
}

func (s *Sealing) seal(passphrase, header, body []byte) ([]byte, error) {
	a, err := s.aead(passphrase)
	if err != nil {
		return nil, err
	}
	return a.Seal(nil, s.Nonce, body, header), nil
}

func (s *Sealing) open(passphrase, header, body []byte) ([]byte, error) {
	if len(passphrase) == 0 {
		return nil, ErrPassphrase
	}
	a, err := s.aead(passphrase)
	if err != nil {
		return nil, err
	}
	plain, err := a.Open(nil, s.Nonce, body, header)
	if err != nil {
		return nil, ErrPassphrase
	}
	return plain, nil
}
