// Package rsabackend chooses what does the private operations with the cluster's key: the host's OpenSSL 3 (package
// libcrypto) or crypto/rsa.
//
// In: the option rsa_backend, the host's libcrypto.so.3. Out: identities for sign-ins and publications, the reason of
// the choice in the log, and the number of wrong signatures that libcrypto made.
//
// Promises: Check fails where rsa_backend asks for a library that cannot be used, before anything is opened. A key
// works with either choice.
package rsabackend
