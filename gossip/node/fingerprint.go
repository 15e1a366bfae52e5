package node

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Fingerprint is the SHA-256 of a certificate's DER form as 64 lower-case hex digits. The zero value belongs to no
// node.
type Fingerprint string

// FingerprintOf returns the fingerprint of a certificate in DER form.
func FingerprintOf(der []byte) Fingerprint {
	sum := sha256.Sum256(der)
	return Fingerprint(hex.EncodeToString(sum[:]))
}

// ParseFingerprint accepts 64 hex digits in either case, with or without colons between the bytes.
func ParseFingerprint(s string) (Fingerprint, error) {
	text := strings.ToLower(strings.ReplaceAll(s, ":", ""))
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("a fingerprint is %d hex digits (SHA-256), got %d characters", 2*sha256.Size, len(s))
	}
	return Fingerprint(text), nil
}

// Short returns the first twelve digits, enough to recognise a certificate in a log line.
func (f Fingerprint) Short() string { return string(f[:min(len(f), 12)]) }

// String returns all digits.
func (f Fingerprint) String() string { return string(f) }
