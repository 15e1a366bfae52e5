package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Hash is the SHA-256 of an object or a chunk.
type Hash [sha256.Size]byte

// Sum hashes bytes.
func Sum(b []byte) Hash { return sha256.Sum256(b) }

// ParseHash reads what String writes.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != 2*len(h) {
		return h, fmt.Errorf("hash of %d characters, want %d", len(s), 2*len(h))
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("parse hash: %w", err)
	}
	return h, nil
}

// IsZero reports whether h is the zero hash, which stands for none.
func (h Hash) IsZero() bool { return h == Hash{} }

// String is the hash in lower-case hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Short is what people see.
func (h Hash) Short() string { return hex.EncodeToString(h[:6]) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(b []byte) (err error) {
	*h, err = ParseHash(string(b))
	return err
}
