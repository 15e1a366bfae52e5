package node

import (
	"errors"
	"fmt"
)

// MaxID is the greatest length of an ID in bytes.
const MaxID = 63

// ErrInvalidID is wrapped by every error ParseID returns.
var ErrInvalidID = errors.New("invalid node id")

// ID names a node: [a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?
//
// The alphabet is the intersection of what is safe as a URL host, a file name, a memberlist name and a raft server id.
type ID string

// ParseID checks s and returns it as an ID. It never changes the text: an upper-case letter is an error rather than
// being folded, so that two spellings of one id cannot exist in different files.
func ParseID(s string) (ID, error) {
	switch {
	case s == "":
		return "", fmt.Errorf("%w: it is empty", ErrInvalidID)
	case len(s) > MaxID:
		return "", fmt.Errorf("%w: it has %d characters, at most %d are allowed", ErrInvalidID, len(s), MaxID)
	case !isAlphanumeric(s[0]) || !isAlphanumeric(s[len(s)-1]):
		return "", fmt.Errorf("%w %q: it must begin and end with a lower-case letter or a digit", ErrInvalidID, s)
	}
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && c != '.' && c != '_' && c != '-' {
			return "", fmt.Errorf("%w %q: only lower-case letters, digits, '.', '_' and '-' are allowed", ErrInvalidID, s)
		}
	}
	return ID(s), nil
}

// Valid reports whether the ID would be accepted by ParseID.
func (id ID) Valid() bool {
	_, err := ParseID(string(id))
	return err == nil
}

// String returns the id as it is written everywhere.
func (id ID) String() string { return string(id) }

// Strings returns ids as texts; never nil.
func Strings(ids []ID) []string {
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		out = append(out, string(id))
	}
	return out
}

func isAlphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
