// Package libcrypto does the RSA private operations of the cluster's key with the host's OpenSSL 3 (libcrypto.so.3).
// The library is loaded at run time, without cgo and without a C compiler (github.com/ebitengine/purego), because it
// is three times as fast as crypto/rsa.
//
// Go stays the reference and the fallback. Before a key is used, each of Salt's algorithms is compared with
// crypto/rsa; an algorithm that the host does not allow (a crypto policy may forbid SHA-1 signatures), or that gives
// another result, stays with Go. An operation that OpenSSL refuses is repeated by Go: a fault of a library turns no
// minion away, and a ciphertext is only rejected when Go rejects it.
//
// Promises: every signature is verified with the public key before it leaves (a faulty one would give the factors
// away) and done again by Go when it is wrong; OpenSSL blinds the key; its copy of the key is erased when the Key is
// collected; C keeps no pointer to Go memory after a call; no configuration file of OpenSSL is read, and no engine or
// provider but the default one is loaded; errors name functions and reasons of OpenSSL, never data. Each call has its
// own EVP_PKEY_CTX, so a Key is safe for concurrent use.
//
// The build tag nolibcrypto, and other systems than Linux on amd64 and arm64, leave the library out: Load returns
// ErrUnavailable, and the program is static.
package libcrypto
