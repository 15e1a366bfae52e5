package saltcrypt

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
)

const (
	// MinKeyBits and MaxKeyBits bound the modulus of an acceptable RSA key. Salt's default is 2048; larger than 8192 would
	// let a stranger buy seconds of our time with one request.
	MinKeyBits = 1024
	MaxKeyBits = 8192

	maxPublicText = 4096 // an 8192-bit key takes about 1,500 characters
)

// Errors about public keys and signatures.
var (
	ErrPublicKey = errors.New("not an acceptable RSA public key")
	ErrSignature = errors.New("signature does not verify")
	ErrAlgorithm = errors.New("algorithm that Salt does not have")
)

// PublicKey is an RSA public key of a minion or a master. Safe for concurrent use.
type PublicKey struct {
	key *rsa.PublicKey
	e   *big.Int
}

// indented are the spaces that begin a line.
var indented = regexp.MustCompile(`\n[ \t]+`)

// ParsePublicKey reads what Salt accepts as a public key: one PEM block, SubjectPublicKeyInfo or PKCS#1, of an RSA key.
// Its lines may be indented, as those of a file that was written by a template. Errors wrap ErrPublicKey.
func ParsePublicKey(text string) (*PublicKey, error) {
	if len(text) > maxPublicText {
		return nil, fmt.Errorf("%w: text too long", ErrPublicKey)
	}
	block, ok := onlyBlock(indented.ReplaceAllString(CleanKey(text), "\n"))
	if !ok {
		return nil, fmt.Errorf("%w: not exactly one PEM block", ErrPublicKey)
	}
	var key *rsa.PublicKey
	switch block.Type {
	case "PUBLIC KEY":
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: SubjectPublicKeyInfo does not parse", ErrPublicKey)
		}
		if key, ok = parsed.(*rsa.PublicKey); !ok {
			return nil, fmt.Errorf("%w: not RSA", ErrPublicKey)
		}
	case "RSA PUBLIC KEY":
		var err error
		if key, err = x509.ParsePKCS1PublicKey(block.Bytes); err != nil {
			return nil, fmt.Errorf("%w: PKCS#1 does not parse", ErrPublicKey)
		}
	default:
		return nil, fmt.Errorf("%w: PEM block of another type", ErrPublicKey)
	}
	return newPublicKey(key)
}

// newPublicKey checks the bounds. OpenSSL and Go refuse an even modulus or exponent only when they are used, which
// would be after the key was accepted.
func newPublicKey(key *rsa.PublicKey) (*PublicKey, error) {
	switch bits := key.N.BitLen(); {
	case bits < MinKeyBits || bits > MaxKeyBits:
		return nil, fmt.Errorf("%w: %d bits, want %d to %d", ErrPublicKey, bits, MinKeyBits, MaxKeyBits)
	case key.N.Bit(0) == 0:
		return nil, fmt.Errorf("%w: even modulus", ErrPublicKey)
	case key.E < 3 || key.E > math.MaxInt32 || key.E&1 == 0:
		return nil, fmt.Errorf("%w: bad exponent", ErrPublicKey)
	}
	return &PublicKey{key: key, e: big.NewInt(int64(key.E))}, nil
}

// Bits is the size of the modulus.
func (p *PublicKey) Bits() int { return p.key.N.BitLen() }

// Equal says whether both are the same key.
func (p *PublicKey) Equal(o *PublicKey) bool { return p.key.Equal(o.key) }

// Text is the key as clean SubjectPublicKeyInfo PEM, the form Salt sends.
func (p *PublicKey) Text() string {
	der, err := x509.MarshalPKIXPublicKey(p.key)
	if err != nil {
		return "" // not reachable: the key is RSA
	}
	return CleanKey(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
}

// EncryptOAEP seals msg; algo is an enc_algo name. Errors: ErrAlgorithm, or msg too long for the key.
func (p *PublicKey) EncryptOAEP(algo string, msg []byte) ([]byte, error) {
	h, ok := encHash(algo)
	if !ok {
		return nil, ErrAlgorithm
	}
	ct, err := p.encryptOAEP(h, msg, nil)
	if err != nil {
		return nil, fmt.Errorf("encrypting with %s: %w", algo, err)
	}
	return ct, nil
}

func (p *PublicKey) encryptOAEP(h crypto.Hash, msg, label []byte) ([]byte, error) {
	return rsa.EncryptOAEP(h.New(), rand.Reader, p.key, msg, label)
}

// Verify checks a PKCS#1 v1.5 signature of data; algo is a sig_algo name. Errors: ErrAlgorithm, ErrSignature.
func (p *PublicKey) Verify(algo string, data, sig []byte) error {
	h, ok := sigHash(algo)
	if !ok {
		return ErrAlgorithm
	}
	return p.VerifyDigest(h, hashData(h, data), sig)
}

// VerifyDigest is Verify of what was hashed already. Errors: ErrSignature.
func (p *PublicKey) VerifyDigest(h crypto.Hash, digest, sig []byte) error {
	if rsa.VerifyPKCS1v15(p.key, h, digest, sig) != nil {
		return ErrSignature
	}
	return nil
}

// VerifyPubSig checks pub_sig of a sign-in reply: p is the master's signing key (master_sign.pub), text its pub_key as
// sent (salt/crypt.py:AsyncAuth.verify_pubkey_sig). Errors: ErrAlgorithm, ErrSignature.
func (p *PublicKey) VerifyPubSig(algo, text, pubSig string) error {
	sig, err := base64.StdEncoding.DecodeString(pubSig)
	if err != nil {
		return ErrSignature
	}
	return p.Verify(algo, []byte(text), sig)
}

func hashData(h crypto.Hash, data []byte) []byte {
	d := h.New()
	d.Write(data)
	return d.Sum(nil)
}
