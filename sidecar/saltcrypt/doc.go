// Package saltcrypt does Salt's cryptography in Go: the Crypticle that seals loads, the RSA operations of sign-in and
// signatures, and the derivation of session keys. It owns key material while it is in memory and nothing else.
//
// Formats are those of salt/crypt.py and salt/utils/rsax931.py, the same in 3006, 3007 and 3008; vectors recorded
// from each version are in testdata. Vocabulary: a Key is Salt's "AES key string" (AES-192 key and HMAC key
// together), a Crypticle is what uses it, X9.31 is the old signature padding that `tok` and the sign-in reply's `sig`
// carry, clean is Salt's normal form of a PEM text.
//
// Promises: everything is safe for concurrent use; ciphertext is authenticated in constant time before a byte of it is
// decrypted; RSA private operations run in constant time or are blinded; key types print as [redacted] whatever verb is
// used, and no error carries key material. The algorithms are Salt's choice and not ours: SHA-1 and PKCS#1 v1.5 are
// here because the minions in the field speak nothing else.
package saltcrypt
