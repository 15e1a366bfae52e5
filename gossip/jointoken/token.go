package jointoken

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

const (
	prefix = "sct1"

	idSize      = 10 // characters
	seedSize    = 16 // bytes
	clusterSize = sha256.Size

	// MaxText bounds the text of a token of any version, in bytes.
	MaxText = 256

	keyLabel = "scd-join-token-v1"
	idLetter = "abcdefghijkmnpqrstuvwxyz23456789" // 32, none of which is taken for another
)

// ErrMalformed is wrapped by every error of Parse, none of which quotes the text.
var ErrMalformed = errors.New("not a join token")

// Token is the permission of one node to join.
type Token struct {
	id      string
	seed    *string // fmt prints a pointer to text as an address, also where it does not ask Format
	cluster string  // SHA-256 of the cluster's public key, hex; empty: not known yet
}

// New makes a token for a cluster that is named later, see For.
func New() Token {
	var raw [idSize]byte
	var seed [seedSize]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	_, _ = rand.Read(seed[:])
	id := make([]byte, idSize)
	for i, b := range raw {
		id[i] = idLetter[b%32]
	}
	text := string(seed[:])
	return Token{id: string(id), seed: &text}
}

// privateKey is derived from the seed.
func (t Token) privateKey() ed25519.PrivateKey {
	material, err := hkdf.Key(sha256.New, []byte(*t.seed), []byte(t.id), keyLabel, ed25519.SeedSize)
	if err != nil {
		panic("jointoken: " + err.Error()) // only for lengths, which are constants here
	}
	return ed25519.NewKeyFromSeed(material)
}

// For returns the token for the cluster whose public key has that SHA-256, in hex.
func (t Token) For(cluster string) (Token, error) {
	raw, err := hex.DecodeString(cluster)
	if err != nil || len(raw) != clusterSize {
		return Token{}, errors.New("the cluster's fingerprint is not a SHA-256 in hex")
	}
	t.cluster = hex.EncodeToString(raw)
	return t, nil
}

// Parse reads the text of a token; white space around it does not matter.
func Parse(s string) (Token, error) {
	s = strings.TrimSpace(s)
	if len(s) > MaxText {
		return Token{}, fmt.Errorf("%w: it has more than %d characters", ErrMalformed, MaxText)
	}
	f := strings.Split(s, ".")
	switch {
	case !strings.HasPrefix(f[0], "sct"):
		return Token{}, fmt.Errorf("%w: it does not begin with %s", ErrMalformed, prefix)
	case f[0] != prefix:
		return Token{}, fmt.Errorf("%w of this version: it was made by another saltclusterd", ErrMalformed)
	case len(f) != 4 || len(f[1]) != idSize || strings.Trim(f[1], idLetter) != "":
		return Token{}, fmt.Errorf("%w: is it complete?", ErrMalformed)
	}
	seed, err := decodeField(f[2], seedSize)
	if err != nil {
		return Token{}, err
	}
	cluster, err := decodeField(f[3], clusterSize)
	if err != nil {
		return Token{}, err
	}
	text := string(seed)
	return Token{id: f[1], seed: &text, cluster: hex.EncodeToString(cluster)}, nil
}

func decodeField(s string, size int) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != size || len(s) != base64.RawURLEncoding.EncodedLen(size) { // it passes over line feeds
		return nil, fmt.Errorf("%w: is it complete?", ErrMalformed)
	}
	return b, nil
}

// Text is what Parse reads: the secret itself.
func (t Token) Text() string {
	cluster, _ := hex.DecodeString(t.cluster) // checked by For and Parse
	enc := base64.RawURLEncoding
	return strings.Join([]string{prefix, t.id, enc.EncodeToString([]byte(*t.seed)), enc.EncodeToString(cluster)}, ".")
}

// IsZero reports whether t is the zero Token.
func (t Token) IsZero() bool { return t.seed == nil }

// ID names the token.
func (t Token) ID() string { return t.id }

// Cluster is the SHA-256 of the public key of the cluster it is for, in hex.
func (t Token) Cluster() string { return t.cluster }

// Public is what members check Sign with.
func (t Token) Public() []byte { return t.privateKey().Public().(ed25519.PublicKey) }

// Sign proves that the signer holds the token.
func (t Token) Sign(message []byte) []byte { return ed25519.Sign(t.privateKey(), message) }

// Verify checks what Sign made.
func Verify(public, message, signature []byte) bool {
	return len(public) == ed25519.PublicKeySize && ed25519.Verify(public, message, signature)
}

const redacted = "[redacted]"

// Format prints a placeholder whatever the verb.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue prints a placeholder in slog records.
func (t Token) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText writes a placeholder, for encoders that come across a token.
func (t Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }
