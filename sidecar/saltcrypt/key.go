package saltcrypt

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

const (
	aesKeySize  = 24 // AES-192, Salt's only size
	hmacKeySize = 32
	keyTextLen  = 76 // base64 of 56 bytes
	redacted    = "[redacted]"
)

// ErrKeyText means a text is not a Salt AES key string.
var ErrKeyText = errors.New("not a Salt AES key string (76 characters of base64)")

// Key is what Salt calls an AES key string: 24 bytes of AES-192 key and 32 bytes of HMAC-SHA256 key
// (salt/crypt.py:Crypticle.generate_key_string). It prints as [redacted]; only Text shows it.
type Key [aesKeySize + hmacKeySize]byte

// NewKey makes a random key.
func NewKey() (Key, error) {
	var k Key
	if _, err := rand.Read(k[:]); err != nil {
		return Key{}, fmt.Errorf("making a Salt AES key: %w", err)
	}
	return k, nil
}

// ParseKey reads the 76-character text form, as it stands in sign-in replies and session files. Errors: ErrKeyText.
func ParseKey(text string) (Key, error) {
	var k Key
	if len(text) != keyTextLen {
		return Key{}, ErrKeyText
	}
	var buf [keyTextLen]byte
	n, err := base64.StdEncoding.Strict().Decode(buf[:], []byte(text))
	if err != nil || n != len(k) {
		return Key{}, ErrKeyText
	}
	copy(k[:], buf[:n])
	return k, nil
}

// Text returns the 76-character form. The result is a secret.
func (k Key) Text() string { return base64.StdEncoding.EncodeToString(k[:]) }

// Equal compares in constant time.
func (k Key) Equal(o Key) bool { return subtle.ConstantTimeCompare(k[:], o[:]) == 1 }

// IsZero tells the zero value, which is never a valid key, from a real one.
func (k Key) IsZero() bool { return k.Equal(Key{}) }

// Format prints [redacted] for every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue keeps keys out of structured logs.
func (k Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText refuses: a key gets into a document through Text, deliberately, or not at all.
func (k Key) MarshalText() ([]byte, error) {
	return nil, errors.New("a Salt AES key is not marshalled implicitly")
}
