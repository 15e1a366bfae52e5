package haproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// sealBegins begins the line that tells a file which was made here, and not changed since, from any other.
const sealBegins = "# Made by saltclusterctl haproxy; unless changed since, its checksum is "

// Seal adds that line to a configuration.
func Seal(text string) string { return text + sealBegins + checksum(text) + "\n" }

// IsSealed tells whether a text is what Seal has returned.
func IsSealed(text string) bool {
	at := strings.LastIndex(text, sealBegins)
	return at >= 0 && text == Seal(text[:at])
}

func checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
