package herd

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
	"math/big"

	"saltclusterd/sidecar/saltcrypt"
)

// Key is what minions sign in with (saltcrypt.MasterKey, or a FastKey).
type Key interface {
	PublicText() string
	DecryptOAEP(algo string, ct []byte) ([]byte, error)
	SignX931(msg []byte) ([]byte, error)
}

const (
	keyBits  = 2048
	factors  = 16
	exponent = 65537
)

// FastKey is an RSA key of sixteen prime factors: this does not show in its public half, and a private operation
// is several times as fast. It protects nothing and does not run in constant time.
type FastKey struct {
	n       *big.Int
	text    string
	factors []factor
}

// factor is one prime and what the Chinese remainder theorem needs of it.
type factor struct{ p, d, weight *big.Int }

// NewFastKey makes one.
func NewFastKey() (*FastKey, error) {
	for {
		primes, n, err := drawPrimes()
		if err != nil {
			return nil, fmt.Errorf("make a key: %w", err)
		}
		if primes == nil {
			continue
		}
		k := &FastKey{n: n}
		e := big.NewInt(exponent)
		for _, p := range primes {
			less := new(big.Int).Sub(p, big.NewInt(1))
			rest := new(big.Int).Div(n, p)
			f := factor{p: p, d: new(big.Int).ModInverse(e, less)}
			f.weight = new(big.Int).ModInverse(new(big.Int).Mod(rest, p), p)
			f.weight.Mul(f.weight, rest)
			k.factors = append(k.factors, f)
		}
		der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n, E: exponent})
		if err != nil {
			return nil, fmt.Errorf("make a key: %w", err)
		}
		k.text = saltcrypt.CleanKey(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
		return k, nil
	}
}

// drawPrimes returns no primes when those it drew do not fit.
func drawPrimes() (primes []*big.Int, n *big.Int, err error) {
	n = big.NewInt(1)
	for i := range factors {
		bits := keyBits / factors
		if i == factors-1 {
			bits = keyBits + 1 - n.BitLen() // fills up what the others left out
		}
		p, err := rand.Prime(rand.Reader, bits)
		if err != nil {
			return nil, nil, err
		}
		less := new(big.Int).Sub(p, big.NewInt(1))
		if new(big.Int).GCD(nil, nil, less, big.NewInt(exponent)).Cmp(big.NewInt(1)) != 0 {
			return nil, nil, nil
		}
		primes = append(primes, p)
		n.Mul(n, p)
	}
	if n.BitLen() != keyBits {
		return nil, nil, nil
	}
	for i, p := range primes {
		for _, q := range primes[:i] {
			if p.Cmp(q) == 0 {
				return nil, nil, nil
			}
		}
	}
	return primes, n, nil
}

// PublicText implements Key.
func (k *FastKey) PublicText() string { return k.text }

// private computes c^d mod n.
func (k *FastKey) private(c *big.Int) *big.Int {
	sum := new(big.Int)
	for _, f := range k.factors {
		m := new(big.Int).Exp(new(big.Int).Mod(c, f.p), f.d, f.p)
		sum.Add(sum, m.Mul(m, f.weight))
	}
	return sum.Mod(sum, k.n)
}

func (k *FastKey) size() int { return (k.n.BitLen() + 7) / 8 }

var errOAEP = errors.New("ciphertext does not decrypt with this key")

// DecryptOAEP implements Key.
func (k *FastKey) DecryptOAEP(algo string, ct []byte) ([]byte, error) {
	var h func() hash.Hash
	switch algo {
	case saltcrypt.OAEPSHA1:
		h = sha1.New
	case saltcrypt.OAEPSHA224:
		h = sha256.New224
	default:
		return nil, saltcrypt.ErrAlgorithm
	}
	if len(ct) != k.size() {
		return nil, errOAEP
	}
	em := k.private(new(big.Int).SetBytes(ct)).FillBytes(make([]byte, k.size()))
	empty := h()
	n := empty.Size()
	seed, db := em[1:1+n], em[1+n:]
	mask(seed, db, h())
	mask(db, seed, h())
	if em[0] != 0 || !bytes.Equal(db[:n], empty.Sum(nil)) {
		return nil, errOAEP
	}
	rest := bytes.TrimLeft(db[n:], "\x00")
	if len(rest) == 0 || rest[0] != 1 {
		return nil, errOAEP
	}
	return rest[1:], nil
}

// mask applies MGF1.
func mask(out, seed []byte, h hash.Hash) {
	var count [4]byte
	for i := uint32(0); len(out) > 0; i++ {
		binary.BigEndian.PutUint32(count[:], i)
		h.Reset()
		h.Write(seed)
		h.Write(count[:])
		for _, b := range h.Sum(nil) {
			if len(out) == 0 {
				return
			}
			out[0] ^= b
			out = out[1:]
		}
	}
}

// SignX931 implements Key.
func (k *FastKey) SignX931(msg []byte) ([]byte, error) {
	pad := k.size() - len(msg) - 2
	if pad < 2 {
		return nil, saltcrypt.ErrX931
	}
	em := append([]byte{0x6b}, bytes.Repeat([]byte{0xbb}, pad-1)...)
	em = append(append(append(em, 0xba), msg...), 0xcc)
	s := k.private(new(big.Int).SetBytes(em))
	if other := new(big.Int).Sub(k.n, s); other.Cmp(s) < 0 {
		s = other
	}
	return s.FillBytes(make([]byte, k.size())), nil
}
