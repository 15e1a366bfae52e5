package saltcrypt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"strings"
)

// CleanKey is Salt's normal form of a PEM text (salt/crypt.py:clean_key): no space around it, LF line ends, no newline
// at the end. Keys are compared in this form.
func CleanKey(text string) string {
	if isClean(text) {
		return text
	}
	text = Strip(text)
	if !strings.ContainsAny(text, "\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029") {
		return text
	}
	// str.splitlines cuts at all of these; "\r\n" counts as one.
	return lineEnds.Replace(text)
}

// isClean says at once of nearly all texts that nothing is to be done.
func isClean(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && c != '\n' {
			return false
		}
	}
	return text != "" && text[0] > ' ' && text[len(text)-1] > ' '
}

// SameKey compares two texts of public keys as stock does (salt/channel/server.py:compare_keys). Mostly they are the
// same to the byte.
func SameKey(a, b string) bool { return a == b || CleanKey(a) == CleanKey(b) }

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n",
	"\x1c", "\n", "\x1d", "\n", "\x1e", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// Strip takes off what Python's str.strip takes off, which is more than what Go calls a space.
func Strip(text string) string { return strings.TrimFunc(text, isSpace) }

// isSpace is what Python's str.strip takes off.
func isSpace(r rune) bool {
	switch r {
	case ' ', '\t', '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x1f, 0x85, 0xa0, 0x1680,
		0x2028, 0x2029, 0x202f, 0x205f, 0x3000:
		return true
	}
	return r >= 0x2000 && r <= 0x200a
}

// Fingerprint is what `salt-key -F` prints for a public key and what master_finger is compared with: SHA-256 over the
// lines between BEGIN and END, in colon-separated hex (salt/utils/crypt.py:pem_finger with a path).
func Fingerprint(pub string) string {
	var body []string
	for line := range strings.SplitSeq(CleanKey(pub), "\n") {
		if strings.TrimFunc(line, isSpace) != "" {
			body = append(body, line)
		}
	}
	if len(body) < 2 {
		return ""
	}
	var b strings.Builder
	for _, line := range body[1 : len(body)-1] {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	sum := sha256.Sum256([]byte(b.String()))
	digits := hex.EncodeToString(sum[:])
	out := make([]byte, 0, len(digits)*3/2)
	for i := 0; i < len(digits); i += 2 {
		if i > 0 {
			out = append(out, ':')
		}
		out = append(out, digits[i], digits[i+1])
	}
	return string(out)
}

// onlyBlock returns the one PEM block that text consists of, and nothing else around it.
func onlyBlock(text string) (*pem.Block, bool) {
	if !strings.HasPrefix(text, "-----BEGIN ") {
		return nil, false
	}
	block, rest := pem.Decode([]byte(text + "\n"))
	if block == nil || len(block.Headers) > 0 || len(rest) > 0 || strings.Count(text, "-----BEGIN ") != 1 {
		return nil, false
	}
	return block, true
}
