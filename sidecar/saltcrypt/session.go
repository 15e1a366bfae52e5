package saltcrypt

import (
	"crypto/hkdf"
	"crypto/sha256"
)

// sessionLabel separates this use of the seed from any other, and this derivation from a later one.
const sessionLabel = "saltclusterd session v1"

// DeriveSession derives the session key of a minion from the cluster's secret seed, so that any node computes the same
// key and none needs to be replicated. It binds the minion's public key: an id that comes back with another key pair
// gets another session key. HKDF-SHA256 without salt; info = label, id, SHA-256 of the clean key text (fixed length, so
// unambiguous).
func DeriveSession(seed []byte, id, pubPEM string) Key {
	sum := sha256.Sum256([]byte(CleanKey(pubPEM)))
	var k Key
	okm, err := hkdf.Key(sha256.New, seed, nil, sessionLabel+id+string(sum[:]), len(k))
	if err != nil {
		panic("saltcrypt: hkdf refused a constant length: " + err.Error()) // not reachable by input
	}
	copy(k[:], okm)
	return k
}
