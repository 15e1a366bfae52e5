//go:build !purego

package stitched

import "github.com/klauspost/cpuid/v2"

// supported says that this processor has what the assembly uses.
var supported = cpuid.CPU.Supports(cpuid.AESNI, cpuid.SHA, cpuid.SSSE3, cpuid.SSE4)

// both hashes n blocks of SHA-256 from p on into d while it encrypts the n blocks after the first, in place. chain is the last block of
// ciphertext before them, and is the last one of them afterwards.
//
//go:noescape
func both(keys *schedule, chain *[aesBlock]byte, d *digest, p *byte, n int)

// encrypt encrypts n blocks of AES from p on, in place, and leaves the last one in chain. n may be nought.
//
//go:noescape
func encrypt(keys *schedule, chain *[aesBlock]byte, p *byte, n int)

// hash takes n blocks of SHA-256 from p on into d; n is at least one.
//
//go:noescape
func hash(d *digest, p *byte, n int)

// substitute is AES's S-box for each byte of a word, in constant time.
func substitute(w uint32) uint32
