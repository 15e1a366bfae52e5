package saltcrypt

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"slices"
	"sync"
)

// Errors of Crypticle.Open.
var (
	// ErrAuthentication means the text was not sealed with this key, or was changed since.
	ErrAuthentication = errors.New("salt ciphertext does not authenticate")
	// ErrPlaintext means the text authenticates but is not what Salt puts inside (bad padding or no "pickle::").
	ErrPlaintext = errors.New("salt ciphertext authenticates but is malformed inside")
)

// pad is the fixed start of every plaintext. The name is history: what follows is msgpack.
const pad = "pickle::"

const (
	ivSize  = aes.BlockSize
	macSize = sha256.Size
	// Overhead is by how much Seal makes a text longer at most: IV, "pickle::", padding and MAC.
	Overhead = ivSize + len(pad) + aes.BlockSize + macSize
)

// Crypticle seals and opens loads under one Key: AES-192-CBC, then HMAC-SHA256 over IV and ciphertext
// (salt/crypt.py:Crypticle). It is safe for concurrent use and keeps its expanded keys, so that a call allocates
// nothing but the destination. Unlike Salt's it remembers no serial: replay is judged by who calls it.
type Crypticle struct {
	key    Key
	block  cipher.Block
	states sync.Pool // *state
}

// state is what one call needs and the next can use again.
type state struct {
	mac      hash.Hash
	enc, dec resettable
	iv       [ivSize]byte
	first    [aes.BlockSize]byte
	sum      [macSize]byte
}

// resettable is a CBC mode whose IV can be set anew; the standard library's have it for this very purpose.
type resettable interface {
	cipher.BlockMode
	SetIV(iv []byte)
}

// NewCrypticle prepares a Crypticle for k.
func NewCrypticle(k Key) *Crypticle {
	block, err := aes.NewCipher(k[:aesKeySize])
	if err != nil {
		panic("saltcrypt: AES-192 refused its own key size: " + err.Error()) // constant size: not reachable by input
	}
	return &Crypticle{key: k, block: block}
}

// Format prints [redacted] for every verb.
func (c *Crypticle) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue keeps keys out of structured logs.
func (c *Crypticle) LogValue() slog.Value { return slog.StringValue(redacted) }

func (c *Crypticle) getState() *state {
	if s, ok := c.states.Get().(*state); ok {
		s.mac.Reset()
		return s
	}
	s := &state{mac: hmac.New(sha256.New, c.key[aesKeySize:])}
	s.mac.Reset() // lets hmac keep its two precomputed states for later Resets
	s.enc, _ = cipher.NewCBCEncrypter(c.block, s.iv[:]).(resettable)
	s.dec, _ = cipher.NewCBCDecrypter(c.block, s.iv[:]).(resettable)
	return s
}

func (s *state) cbcEncrypter(b cipher.Block) cipher.BlockMode {
	if s.enc == nil {
		return cipher.NewCBCEncrypter(b, s.iv[:])
	}
	s.enc.SetIV(s.iv[:])
	return s.enc
}

func (s *state) cbcDecrypter(b cipher.Block) cipher.BlockMode {
	if s.dec == nil {
		return cipher.NewCBCDecrypter(b, s.iv[:])
	}
	s.dec.SetIV(s.iv[:])
	return s.dec
}

// SealedLen is the length of what Seal appends for n bytes of nonce and msgpack together.
func SealedLen(n int) int {
	plain := len(pad) + n
	return ivSize + plain + aes.BlockSize - plain%aes.BlockSize + macSize
}

// Seal appends to dst the sealed form of msgpack, preceded inside by nonce (the 32 characters of the request that is
// answered; nil in requests and publications). With Overhead bytes to spare in dst it allocates nothing. dst must not
// overlap the inputs.
func (c *Crypticle) Seal(dst, msgpack, nonce []byte) []byte {
	s := c.getState()
	defer c.states.Put(s)
	_, _ = rand.Read(s.iv[:]) // never fails: crypto/rand ends the program instead

	plain := len(pad) + len(nonce) + len(msgpack)
	fill := aes.BlockSize - plain%aes.BlockSize
	dst = slices.Grow(dst, ivSize+plain+fill+macSize)
	start := len(dst)
	dst = append(dst, s.iv[:]...)
	dst = append(dst, pad...)
	dst = append(dst, nonce...)
	dst = append(dst, msgpack...)
	for range fill {
		dst = append(dst, byte(fill))
	}
	body := dst[start+ivSize:]
	s.cbcEncrypter(c.block).CryptBlocks(body, body)
	s.mac.Write(dst[start:])
	return s.mac.Sum(dst)
}

// Open appends to dst what ciphertext holds after "pickle::": msgpack, preceded by the sender's nonce if it put one.
// The MAC is checked first, in constant time, and nothing is decrypted when it is wrong. dst must not overlap
// ciphertext. Errors: ErrAuthentication, ErrPlaintext; dst is returned unchanged with them.
func (c *Crypticle) Open(dst, ciphertext []byte) ([]byte, error) {
	n := len(ciphertext) - ivSize - macSize
	if n < aes.BlockSize || n%aes.BlockSize != 0 {
		return dst, ErrAuthentication
	}
	s := c.getState()
	defer c.states.Put(s)
	signed, mac := ciphertext[:ivSize+n], ciphertext[ivSize+n:]
	s.mac.Write(signed)
	if !hmac.Equal(s.mac.Sum(s.sum[:0]), mac) {
		return dst, ErrAuthentication
	}

	copy(s.iv[:], signed)
	mode, body := s.cbcDecrypter(c.block), signed[ivSize:]
	mode.CryptBlocks(s.first[:], body[:aes.BlockSize]) // apart, so that "pickle::" need not be cut off by moving the rest
	if string(s.first[:len(pad)]) != pad {
		return dst, ErrPlaintext
	}
	start := len(dst)
	dst = slices.Grow(dst, n-len(pad))
	dst = append(dst, s.first[len(pad):]...)
	rest := body[aes.BlockSize:]
	end := len(dst) + len(rest)
	mode.CryptBlocks(dst[len(dst):end], rest)
	dst = dst[:end]

	fill := int(dst[end-1])
	if fill == 0 || fill > aes.BlockSize || fill > end-start {
		return dst[:start], ErrPlaintext
	}
	return dst[:end-fill], nil
}
