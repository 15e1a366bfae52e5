// Package rsabackend chooses the implementation of RSA operations with the cluster's private key: the host's OpenSSL 3
// (package libcrypto) or crypto/rsa.
//
// In: the option rsa_backend, the host's libcrypto.so.3. Out: identities for sign-ins and publications, the reason for
// the choice in the log, and the number of wrong signatures that libcrypto made.
//
// Promises: if rsa_backend requires a library that cannot be used, Check fails before anything is opened. A key works
// with either choice.
package rsabackend
