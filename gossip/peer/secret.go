package peer

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
)

// Bounds of a secret, after trimming white space.
const (
	minSecretChars = 22 // 128 bits in unpadded base64
	maxSecretChars = 1024
	minSecretKinds = 8 // different characters; a generated secret of 22 has 15 and more
)

// ValidateSecret checks the option cluster_secret. A man in the middle can get one proof to test guesses on, so a
// secret must have 128 bits of randomness; what can be checked is its length and that it is not one character repeated.
func ValidateSecret(s string) error {
	s = strings.TrimSpace(s)
	const hint = "; generate one, for example with: openssl rand -base64 32"
	switch {
	case s == "":
		return errors.New("cluster_secret is empty" + hint)
	case len(s) < minSecretChars:
		return errors.New("cluster_secret is too short: at least 22 characters are needed" + hint)
	case len(s) > maxSecretChars:
		return errors.New("cluster_secret is too long: at most 1024 characters are allowed")
	}
	kinds := map[rune]struct{}{}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return errors.New("cluster_secret contains a control character")
		}
		kinds[r] = struct{}{}
	}
	if len(kinds) < minSecretKinds {
		return errors.New("cluster_secret consists of too few different characters to be random" + hint)
	}
	return nil
}

// SecretBytes returns the key both sides use for a configured secret: its text without surrounding white space.
func SecretBytes(s string) []byte { return []byte(strings.TrimSpace(s)) }

// NewSecret returns a random secret of 256 bits that ValidateSecret accepts.
func NewSecret() (string, error) {
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}
