package saltcrypt

import (
	"crypto"
	_ "crypto/sha1"   // registers crypto.SHA1, which stock minions ask for by default
	_ "crypto/sha256" // registers crypto.SHA224
)

// The names of enc_algo and sig_algo (salt/crypt.py:VALID_ENCRYPTION_ALGORITHMS, VALID_SIGNING_ALGORITHMS). They are
// case sensitive, and no other exists in 3006 to 3008.
const (
	OAEPSHA1       = "OAEP-SHA1"
	OAEPSHA224     = "OAEP-SHA224"
	PKCS1v15SHA1   = "PKCS1v15-SHA1"
	PKCS1v15SHA224 = "PKCS1v15-SHA224"
)

// ValidEncAlgo says whether Salt knows the encryption algorithm of that name.
func ValidEncAlgo(name string) bool { _, ok := encHash(name); return ok }

// ValidSigAlgo says whether Salt knows the signature algorithm of that name.
func ValidSigAlgo(name string) bool { _, ok := sigHash(name); return ok }

func encHash(name string) (crypto.Hash, bool) {
	switch name {
	case OAEPSHA1:
		return crypto.SHA1, true
	case OAEPSHA224:
		return crypto.SHA224, true
	}
	return 0, false
}

func sigHash(name string) (crypto.Hash, bool) {
	switch name {
	case PKCS1v15SHA1:
		return crypto.SHA1, true
	case PKCS1v15SHA224:
		return crypto.SHA224, true
	}
	return 0, false
}
