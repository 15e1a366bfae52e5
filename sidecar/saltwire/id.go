package saltwire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ValidID says whether id may come from the network as a minion's. It is Salt's rule (salt/utils/verify.py:valid_id: no
// slash, backslash or NUL, and a file directly inside pki_dir) with bounds of ours: 1 to 255 bytes of UTF-8, no control
// characters, and no dot at the start, for such files are invisible to salt-key, whichever version. Errors: *Refused.
func ValidID(id string) error {
	switch {
	case id == "", len(id) > maxID, id[0] == '.', !utf8.ValidString(id),
		strings.ContainsAny(id, `/\`), strings.ContainsFunc(id, unicode.IsControl):
		return refuse(ReasonInvalidID, "id")
	}
	return nil
}
