package config

import (
	"fmt"
	"log/slog"
)

// Secret is text that must not be printed: every fmt verb, slog and the JSON
// and YAML encoders show "[redacted]" (or nothing, when it is empty).
type Secret struct{ text string }

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{text: text} }

// Reveal returns the text. Call it only where the text itself is needed.
func (s Secret) Reveal() string { return s.text }

// IsSet reports whether there is any text.
func (s Secret) IsSet() bool { return s.text != "" }

func (s Secret) redactedText() string {
	if s.text == "" {
		return ""
	}
	return "[redacted]"
}

// Format implements fmt.Formatter.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.redactedText()) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.redactedText()) }

// MarshalText implements encoding.TextMarshaler.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.redactedText()), nil }
