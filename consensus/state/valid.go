package state

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode/utf8"

	"saltclusterd/gossip/node"
)

// ValidMinionID checks an id as salt.utils.verify.valid_id does (no separator,
// no NUL, not leaving the directory), and tighter: 1..MaxID bytes of UTF-8, no
// control characters, no leading dot.
func ValidMinionID(id string) error {
	switch {
	case id == "":
		return errors.New("empty minion id")
	case len(id) > MaxID:
		return fmt.Errorf("minion id of %d bytes, at most %d", len(id), MaxID)
	case id[0] == '.':
		return errors.New("minion id starts with a dot")
	case strings.ContainsAny(id, `/\`):
		return errors.New("minion id contains a path separator")
	}
	return validText("minion id", id, MaxID)
}

func validNode(id node.ID) error {
	if _, err := node.ParseID(string(id)); err != nil {
		return fmt.Errorf("node id: %w", err)
	}
	return nil
}

// validText accepts bounded UTF-8 without control characters.
func validText(what, s string, limit int) error {
	if len(s) > limit {
		return fmt.Errorf("%s of %d bytes, at most %d", what, len(s), limit)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not UTF-8", what)
	}
	for _, r := range s {
		if r < 0x20 || r == 0x7f {
			return fmt.Errorf("%s contains a control character", what)
		}
	}
	return nil
}

func validPub(pub string) error {
	switch {
	case pub == "":
		return errors.New("empty public key")
	case len(pub) > MaxPub:
		return fmt.Errorf("public key of %d bytes, at most %d", len(pub), MaxPub)
	case !utf8.ValidString(pub), strings.ContainsRune(pub, 0):
		return errors.New("public key is not text")
	}
	return nil
}

func (a Audit) validate() error {
	if a.By != "" {
		if err := validNode(a.By); err != nil {
			return fmt.Errorf("by: %w", err)
		}
	}
	if a.At < 0 {
		return errors.New("at: negative time")
	}
	return validText("cause", a.Cause, MaxText)
}

func validAddr(addr string) error {
	if err := validText("address", addr, MaxText); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address: %w", err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || host == "" {
		return errors.New("address needs a host and a port number")
	}
	return nil
}

func validFingerprint(fp string) error {
	if b, err := hex.DecodeString(fp); err != nil || len(b) != 32 || strings.ToLower(fp) != fp {
		return errors.New("fingerprint is not 64 lower-case hex digits")
	}
	return nil
}

// validEpochKey checks Salt's text form of an AES key
// (salt.crypt.Crypticle.generate_key_string: base64 of 24+32 bytes).
func validEpochKey(s Secret) error {
	b, err := base64.StdEncoding.Strict().DecodeString(s.Text())
	if err != nil || len(b) != 56 || s.Len() != 76 {
		return errors.New("epoch key is not 76 characters of base64")
	}
	return nil
}

func validGossipKey(s Secret) error {
	switch s.Len() {
	case 16, 24, 32:
		return nil
	}
	return errors.New("gossip key is not 16, 24 or 32 bytes")
}

// MinSeed and MaxSeed bound the session seed, in bytes.
const (
	MinSeed = 32
	MaxSeed = 256
)

func validSeed(s Secret) error {
	if s.Len() < MinSeed || s.Len() > MaxSeed {
		return fmt.Errorf("session seed is not %d to %d bytes", MinSeed, MaxSeed)
	}
	return nil
}
