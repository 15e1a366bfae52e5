package stitched

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
)

const (
	// AESKeySize is that of AES-192, in bytes.
	AESKeySize = 24
	// MACSize is the length of the MAC, in bytes.
	MACSize = 32

	aesBlock  = 16
	shaBlock  = 64
	roundKeys = 13 // AES-192 has twelve rounds and whitens first
	redacted  = "[redacted]"
)

// piece is how many SHA-256 blocks the assembly does at a time: 64 KiB, 60 µs or so.
const piece = 1024

// Sealer seals under one pair of keys.
type Sealer struct {
	keys         schedule
	inner, outer digest // of HMAC, after the block that is the key
}

// schedule is an expanded AES-192 key, in the order in which it is used.
type schedule [roundKeys * aesBlock]byte

// digest is SHA-256's state between two blocks.
type digest [8]uint32

// New prepares a Sealer. aesKey must be AESKeySize bytes and macKey at most 64 (a longer one would have to be hashed first, and Salt's
// are 32). It returns nil where the processor cannot do it, and for keys of other lengths.
func New(aesKey, macKey []byte) *Sealer {
	if !supported || len(aesKey) != AESKeySize || len(macKey) > shaBlock {
		return nil
	}
	s := new(Sealer)
	s.keys.expand(aesKey)
	s.inner, s.outer = keyed(macKey, 0x36), keyed(macKey, 0x5c)
	return s
}

// Format prints [redacted] for every verb.
func (s *Sealer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue keeps keys out of structured logs.
func (s *Sealer) LogValue() slog.Value { return slog.StringValue(redacted) }

// Seal encrypts what follows the first sixteen bytes of text, the IV, in place and returns the MAC of the whole. The length of text must be a
// multiple of sixteen and more than sixteen; it panics otherwise, for padding is the caller's.
func (s *Sealer) Seal(text []byte) [MACSize]byte {
	if len(text) <= aesBlock || len(text)%aesBlock != 0 {
		panic("stitched: text is not an IV and whole blocks")
	}
	chain := [aesBlock]byte(text)
	d := s.inner

	// The hash lags one of its blocks behind: what it takes has to be encrypted.
	ahead := min(shaBlock, len(text))
	encrypt(&s.keys, &chain, &text[aesBlock], (ahead-aesBlock)/aesBlock)
	rest := text
	for len(rest) >= 2*shaBlock {
		n := min(piece, len(rest)/shaBlock-1)
		both(&s.keys, &chain, &d, &rest[0], n)
		rest = rest[n*shaBlock:]
	}
	// Here: up to one block that is encrypted and not hashed, and less than one that is neither.
	if len(rest) > shaBlock {
		encrypt(&s.keys, &chain, &rest[shaBlock], (len(rest)-shaBlock)/aesBlock)
	}
	inner := d.sum(rest, uint64(shaBlock+len(text)))
	outer := s.outer
	return outer.sum(inner[:], shaBlock+MACSize)
}

// sum is the digest of everything after tail, where all of it, the key's block too, is length bytes long.
func (d *digest) sum(tail []byte, length uint64) (out [MACSize]byte) {
	if n := len(tail) / shaBlock; n > 0 {
		hash(d, &tail[0], n)
		tail = tail[n*shaBlock:]
	}
	var last [2 * shaBlock]byte
	copy(last[:], tail)
	last[len(tail)] = 0x80
	n := 1
	if len(tail) >= shaBlock-8 {
		n = 2
	}
	binary.BigEndian.PutUint64(last[n*shaBlock-8:], length*8)
	hash(d, &last[0], n)
	for i, w := range d {
		binary.BigEndian.PutUint32(out[4*i:], w)
	}
	return out
}

// keyed is HMAC's state after the block that is the key with pad over it (RFC 2104).
func keyed(key []byte, pad byte) digest {
	var block [shaBlock]byte
	copy(block[:], key)
	for i := range block {
		block[i] ^= pad
	}
	d := digest{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} // FIPS 180-4, 5.3.3
	hash(&d, &block[0], 1)
	return d
}

// expand is AES's key expansion (FIPS 197, 5.2) for six words of key. The words are little-endian, as the processor has them, so that
// the standard's rotation to the left is one to the right.
func (s *schedule) expand(key []byte) {
	const words = AESKeySize / 4
	var w [roundKeys * aesBlock / 4]uint32
	for i := range words {
		w[i] = binary.LittleEndian.Uint32(key[4*i:])
	}
	rcon := uint32(1)
	for i := words; i < len(w); i++ {
		t := w[i-1]
		if i%words == 0 {
			t = bits.RotateLeft32(substitute(t), -8) ^ rcon
			rcon <<= 1 // eight of them, so that it never leaves the byte
		}
		w[i] = w[i-words] ^ t
	}
	for i, v := range w {
		binary.LittleEndian.PutUint32(s[4*i:], v)
	}
}
