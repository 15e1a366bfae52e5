// Package libcrypto lets OpenSSL do the RSA private operations of the cluster's identity, where the program was built with the tag
// libcrypto and cgo. Without them, and that is the default, Accelerate says ErrNotBuilt and nothing of C is in the program.
//
// The library is loaded when it is first needed (libcrypto.so.3, OpenSSL 3), not linked: a host without it, or with one that is
// unfit, runs the same program with Go's RSA. What Go does stays the measure: before a key is used, each of Salt's algorithms is
// tried against Go's result, and an algorithm that the host does not allow (a crypto policy may forbid SHA-1 signatures) or
// that answers otherwise stays with Go. An operation that OpenSSL refuses is done again by Go, so that no trouble of a library
// turns a minion away, and a ciphertext is only called wrong when Go says so.
//
// Promises: the key is blinded and its results are checked by OpenSSL itself (RSA_blinding_on and the check of the CRT result are
// its defaults, which nothing here changes); its copy of the key is erased when the Key is let go, the encoded one in between at once;
// every call into C is one whole operation that leaves nothing in the thread's error queue, so goroutines need no thread of
// their own; no configuration file of OpenSSL is read, no engine or provider but the default one loaded.
package libcrypto
