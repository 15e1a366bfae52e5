package saltcrypt

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Errors about private keys.
var (
	// ErrEncryptedKey names the option because the remedy is the operator's: we do not know the passphrase.
	ErrEncryptedKey = errors.New("the private key is encrypted: saltclusterd has no passphrases (master options key_pass, for master_sign.pem signing_key_pass); " +
		"store the key unencrypted and unset the option")
	ErrPrivateKey = errors.New("not an acceptable RSA private key")
	ErrDecrypt    = errors.New("ciphertext does not decrypt with this key")
)

// maxPrivateText bounds what is read as a PEM private key; 8192 bits take about 6,500 characters.
const maxPrivateText = 16 << 10

// MasterKey is an RSA private key of Salt: master.pem, master_sign.pem, or the minion.pem of a pseudo minion. It prints
// as [redacted]. Safe for concurrent use.
type MasterKey struct {
	key  *rsa.PrivateKey
	pub  *PublicKey
	text string // clean public text
	x931 *rawRSA
}

// ParseMasterKey reads a PEM private key, PKCS#1 (as Salt writes it) or PKCS#8. Errors: ErrEncryptedKey, ErrPrivateKey.
func ParseMasterKey(text []byte) (*MasterKey, error) {
	if len(text) > maxPrivateText {
		return nil, fmt.Errorf("%w: text too long", ErrPrivateKey)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%w: no PEM block", ErrPrivateKey)
	}
	switch {
	case block.Type == "ENCRYPTED PRIVATE KEY", strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		return nil, ErrEncryptedKey
	case block.Type == "RSA PRIVATE KEY":
		key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: PKCS#1 does not parse", ErrPrivateKey)
		}
		return newMasterKey(key)
	case block.Type == "PRIVATE KEY":
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: PKCS#8 does not parse", ErrPrivateKey)
		}
		if key, ok := parsed.(*rsa.PrivateKey); ok {
			return newMasterKey(key)
		}
		return nil, fmt.Errorf("%w: not RSA", ErrPrivateKey)
	}
	return nil, fmt.Errorf("%w: PEM block of another type", ErrPrivateKey)
}

// GenerateMasterKey makes a key of that many bits (Salt's keysize, 2048 by default).
func GenerateMasterKey(bits int) (*MasterKey, error) {
	if bits < MinKeyBits || bits > MaxKeyBits {
		return nil, fmt.Errorf("%w: %d bits, want %d to %d", ErrPrivateKey, bits, MinKeyBits, MaxKeyBits)
	}
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, fmt.Errorf("generating an RSA key: %w", err)
	}
	return newMasterKey(key)
}

func newMasterKey(key *rsa.PrivateKey) (*MasterKey, error) {
	pub, err := newPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPrivateKey, err)
	}
	if len(key.Primes) != 2 {
		return nil, fmt.Errorf("%w: %d primes, want 2", ErrPrivateKey, len(key.Primes))
	}
	if err := key.Validate(); err != nil {
		return nil, fmt.Errorf("%w: its numbers do not belong together", ErrPrivateKey)
	}
	key.Precompute()
	return &MasterKey{key: key, pub: pub, text: pub.Text(), x931: newRawRSA(key)}, nil
}

// PEM is the private key as Salt writes it: PKCS#1, unencrypted. The result is a secret.
func (m *MasterKey) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(m.key)})
}

// DER is the private key as PKCS#1. The result is a secret, and the caller's to clear.
func (m *MasterKey) DER() []byte { return x509.MarshalPKCS1PrivateKey(m.key) }

// PublicText is the public half as clean SubjectPublicKeyInfo PEM: pub_key of a sign-in reply.
func (m *MasterKey) PublicText() string { return m.text }

// Public is the public half.
func (m *MasterKey) Public() *PublicKey { return m.pub }

// Sign makes a PKCS#1 v1.5 signature of data; algo is a sig_algo name. Errors: ErrAlgorithm.
func (m *MasterKey) Sign(algo string, data []byte) ([]byte, error) {
	h, ok := sigHash(algo)
	if !ok {
		return nil, ErrAlgorithm
	}
	sig, err := rsa.SignPKCS1v15(nil, m.key, h, hashData(h, data))
	if err != nil {
		return nil, fmt.Errorf("signing with %s: %w", algo, err)
	}
	return sig, nil
}

// SignPublic makes pub_sig of a sign-in reply from the text of pub_key: base64 with a line feed at the end, as binascii
// writes it. m is master_sign.pem (master option master_sign_pubkey). Errors: ErrAlgorithm.
func (m *MasterKey) SignPublic(algo, text string) (string, error) {
	sig, err := m.Sign(algo, []byte(text))
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(sig) + "\n", nil
}

// DecryptOAEP opens ct; algo is an enc_algo name. Errors: ErrAlgorithm, ErrDecrypt.
func (m *MasterKey) DecryptOAEP(algo string, ct []byte) ([]byte, error) {
	h, ok := encHash(algo)
	if !ok {
		return nil, ErrAlgorithm
	}
	msg, err := rsa.DecryptOAEP(h.New(), nil, m.key, ct, nil)
	if err != nil {
		return nil, ErrDecrypt
	}
	return msg, nil
}

// Format prints [redacted] for every verb.
func (m *MasterKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue keeps keys out of structured logs.
func (m *MasterKey) LogValue() slog.Value { return slog.StringValue(redacted) }
