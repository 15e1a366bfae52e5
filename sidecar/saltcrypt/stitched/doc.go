// Package stitched seals long texts as Salt's Crypticle does (AES-192-CBC, then HMAC-SHA256 over IV and ciphertext) with both in one
// pass: CBC and SHA-256 each wait for their own last result at every step, and where the processor works on both in turns the hash
// costs nothing. A MiB takes little more than its encryption alone, which is most of what answering for a chunk of a file takes.
//
// It owns the expanded keys of one Sealer and the assembly (amd64 with AES-NI and the SHA extensions). In goes IV and padded
// plaintext in one piece of memory, out comes the ciphertext in its place and the MAC. Where the processor has not got both
// extensions, or is another one, New says so and the caller uses the standard library.
//
// Promises: what comes out is what crypto/cipher and crypto/hmac make of it (tests and a fuzz target compare); no lookups in tables that
// depend on keys or plaintext; a Sealer is safe for concurrent use and allocates nothing when it seals; the assembly never runs
// longer than some tens of microseconds, so that the garbage collector does not wait for it.
package stitched
