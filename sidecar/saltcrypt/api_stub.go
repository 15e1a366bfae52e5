package saltcrypt

import (
	"errors"
)

var errStub = errors.New("saltcrypt: not implemented yet")

// ErrAuthentication means the ciphertext was not sealed with this key.
var ErrAuthentication = errors.New("salt ciphertext does not authenticate")

// Key is Salt's AES key string: 24 bytes AES-192 and 32 bytes HMAC-SHA256.
type Key [56]byte

// NewKey makes a random key.
func NewKey() (Key, error) { return Key{}, errStub }

// ParseKey reads the 76-character text form.
func ParseKey(text string) (Key, error) { return Key{}, errStub }

// Text is the 76-character form.
func (k Key) Text() string { return "" }

// Equal compares in constant time.
func (k Key) Equal(o Key) bool { return k == o }

// Crypticle seals and opens loads under one Key.
type Crypticle struct{ key Key }

// NewCrypticle prepares a Crypticle.
func NewCrypticle(k Key) *Crypticle { return &Crypticle{key: k} }

// Seal appends the ciphertext of "pickle::" nonce msgpack to dst.
func (c *Crypticle) Seal(dst, msgpack, nonce []byte) []byte { return dst }

// Open appends the plaintext after "pickle::" to dst.
func (c *Crypticle) Open(dst, ciphertext []byte) ([]byte, error) { return dst, errStub }

// DeriveSession derives a minion's session key.
func DeriveSession(seed []byte, id, pubPEM string) Key { return Key{} }

// CleanKey is crypt.py:clean_key.
func CleanKey(pem string) string { return pem }

// Fingerprint is utils/crypt.py:pem_finger with sha256.
func Fingerprint(pub string) string { return "" }

// Algorithms as they stand in enc_algo and sig_algo.
const (
	OAEPSHA1       = "OAEP-SHA1"
	OAEPSHA224     = "OAEP-SHA224"
	PKCS1v15SHA1   = "PKCS1v15-SHA1"
	PKCS1v15SHA224 = "PKCS1v15-SHA224"
)

// ValidEncAlgo and ValidSigAlgo say whether Salt knows the name.
func ValidEncAlgo(name string) bool { return name == OAEPSHA1 || name == OAEPSHA224 }

// ValidSigAlgo says whether Salt knows the signature algorithm.
func ValidSigAlgo(name string) bool { return name == PKCS1v15SHA1 || name == PKCS1v15SHA224 }

// MasterKey is an RSA private key (master.pem, master_sign.pem, a minion's minion.pem).
type MasterKey struct{}

// ParseMasterKey reads a PEM private key.
func ParseMasterKey(pem []byte) (*MasterKey, error) { return nil, errStub }

// GenerateMasterKey makes a new key of that many bits.
func GenerateMasterKey(bits int) (*MasterKey, error) { return nil, errStub }

// PEM is the PKCS#1 text as Salt writes it to master.pem.
func (m *MasterKey) PEM() []byte { return nil }

// PublicText is the public key as clean SubjectPublicKeyInfo PEM text.
func (m *MasterKey) PublicText() string { return "" }

// Public is the public half.
func (m *MasterKey) Public() *PublicKey { return nil }

// SignX931 is RSA_private_encrypt with X9.31 padding.
func (m *MasterKey) SignX931(msg []byte) ([]byte, error) { return nil, errStub }

// Sign makes a PKCS#1 v1.5 signature; algo is a sig_algo name.
func (m *MasterKey) Sign(algo string, data []byte) ([]byte, error) { return nil, errStub }

// DecryptOAEP opens ct; algo is an enc_algo name.
func (m *MasterKey) DecryptOAEP(algo string, ct []byte) ([]byte, error) { return nil, errStub }

// PublicKey is an RSA public key of a minion or master.
type PublicKey struct{}

// ParsePublicKey reads a PEM public key of 1024 to 8192 bits.
func ParsePublicKey(pem string) (*PublicKey, error) { return nil, errStub }

// VerifyX931 recovers the message of an X9.31 signature.
func (p *PublicKey) VerifyX931(sig []byte) ([]byte, error) { return nil, errStub }

// EncryptOAEP seals msg; algo is an enc_algo name.
func (p *PublicKey) EncryptOAEP(algo string, msg []byte) ([]byte, error) { return nil, errStub }

// Verify checks a PKCS#1 v1.5 signature; algo is a sig_algo name.
func (p *PublicKey) Verify(algo string, data, sig []byte) error { return errStub }

// Bits is the size of the modulus.
func (p *PublicKey) Bits() int { return 0 }
