package state

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[secret]"

// Secret is text or bytes that must not be printed: fmt, slog and JSON show a
// placeholder. The codec of this package is the only one that writes it out.
//
// The content hangs behind a pointer because fmt prints the contents of
// unexported fields without asking their methods; it prints a pointer as an
// address.
type Secret struct{ p *string }

// NewSecret keeps b, which may be binary.
func NewSecret(b []byte) Secret { return SecretText(string(b)) }

// SecretText keeps s.
func SecretText(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{p: &s}
}

// Bytes returns a copy of the content.
func (s Secret) Bytes() []byte { return []byte(s.Text()) }

// Text returns the content.
func (s Secret) Text() string {
	if s.p == nil {
		return ""
	}
	return *s.p
}

// IsZero tells whether s has no content.
func (s Secret) IsZero() bool { return s.p == nil }

// Len is the length of the content in bytes.
func (s Secret) Len() int { return len(s.Text()) }

// Equal compares contents in constant time.
func (s Secret) Equal(o Secret) bool {
	return subtle.ConstantTimeCompare(s.Bytes(), o.Bytes()) == 1
}

// Format prints a placeholder whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue prints a placeholder in slog records.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON writes a placeholder, so that a status page or a debug dump
// which happens to contain a Secret does not publish it.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// UnmarshalJSON refuses: secrets are read by this package's own codec only.
func (s *Secret) UnmarshalJSON([]byte) error {
	return fmt.Errorf("a secret cannot be read from JSON")
}
