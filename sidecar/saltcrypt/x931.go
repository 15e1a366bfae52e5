package saltcrypt

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"
)

// ErrX931 means a message does not fit, or a signature is not one of this key.
var ErrX931 = errors.New("X9.31 signature is not valid for this key")

// rawRSA is the bare private operation, which crypto/rsa rightly does not offer. X9.31 needs it because its padding is
// none of PKCS#1. math/big does not run in constant time, so every operation is blinded, and its result is checked
// before it leaves: a CRT computation gone wrong once would give the factors away.
type rawRSA struct {
	n, e, p, q, dp, dq, qinv *big.Int
}

func newRawRSA(key *rsa.PrivateKey) *rawRSA {
	one := big.NewInt(1)
	p, q := key.Primes[0], key.Primes[1]
	return &rawRSA{
		n: key.N, e: big.NewInt(int64(key.E)), p: p, q: q,
		dp:   new(big.Int).Mod(key.D, new(big.Int).Sub(p, one)),
		dq:   new(big.Int).Mod(key.D, new(big.Int).Sub(q, one)),
		qinv: new(big.Int).ModInverse(q, p),
	}
}

// privateExp computes m^d mod n.
func (r *rawRSA) privateExp(m *big.Int) (*big.Int, error) {
	blind, unblind, err := r.newBlinding()
	if err != nil {
		return nil, err
	}
	c := new(big.Int).Exp(blind, r.e, r.n)
	c.Mul(c, m).Mod(c, r.n)
	mp := new(big.Int).Exp(new(big.Int).Mod(c, r.p), r.dp, r.p)
	mq := new(big.Int).Exp(new(big.Int).Mod(c, r.q), r.dq, r.q)
	s := mp.Sub(mp, mq)
	s.Mul(s, r.qinv).Mod(s, r.p)
	s.Mul(s, r.q).Add(s, mq)
	s.Mul(s, unblind).Mod(s, r.n)
	if new(big.Int).Exp(s, r.e, r.n).Cmp(m) != 0 {
		return nil, errors.New("RSA private operation gave a wrong result: faulty hardware?")
	}
	return s, nil
}

// newBlinding returns a random unit modulo n and its inverse.
func (r *rawRSA) newBlinding() (b, inverse *big.Int, err error) {
	for range 8 {
		if b, err = rand.Int(rand.Reader, r.n); err != nil {
			return nil, nil, fmt.Errorf("drawing a blinding factor: %w", err)
		}
		if inverse = new(big.Int).ModInverse(b, r.n); inverse != nil {
			return b, inverse, nil
		}
	}
	return nil, nil, errors.New("drawing a blinding factor: no unit found")
}

// SignX931 is OpenSSL's RSA_private_encrypt with RSA_X931_PADDING, which Salt calls "encrypt"
// (salt/utils/rsax931.py:RSAX931Signer.sign): `sig` of a sign-in reply (the hex SHA-256 of the AES key string) and
// `tok` of a request (the word "salt"). Both are constant (per epoch, per key), so callers should keep them: it costs a
// Sign.
func (m *MasterKey) SignX931(msg []byte) ([]byte, error) {
	k := m.key.Size()
	em, ok := padX931(msg, k)
	if !ok {
		return nil, ErrX931
	}
	f := new(big.Int).SetBytes(em)
	if f.Cmp(m.key.N) >= 0 { // only for a modulus whose length is not a multiple of 8
		return nil, ErrX931
	}
	s, err := m.x931.privateExp(f)
	if err != nil {
		return nil, err
	}
	if other := new(big.Int).Sub(m.key.N, s); other.Cmp(s) < 0 {
		s = other
	}
	return s.FillBytes(make([]byte, k)), nil
}

// VerifyX931 recovers the message of a signature (salt/utils/rsax931.py:RSAX931Verifier.verify). Errors: ErrX931.
func (p *PublicKey) VerifyX931(sig []byte) ([]byte, error) {
	em, err := p.publicExp(sig)
	if err != nil {
		return nil, err
	}
	if em[len(em)-1]&0x0f != 0x0c {
		f := new(big.Int).SetBytes(em)
		f.Sub(p.key.N, f).FillBytes(em)
	}
	return unpadX931(em)
}

// publicExp is the bare public operation. Its result has the length of the modulus. Errors: ErrX931.
func (p *PublicKey) publicExp(sig []byte) ([]byte, error) {
	s := new(big.Int).SetBytes(sig)
	if len(sig) != p.key.Size() || s.Cmp(p.key.N) >= 0 {
		return nil, ErrX931
	}
	return s.Exp(s, p.e, p.key.N).FillBytes(make([]byte, len(sig))), nil
}

// padX931 is 6B BB… BA msg CC, or 6A msg CC when msg fills it (OpenSSL crypto/rsa/rsa_x931.c).
func padX931(msg []byte, k int) ([]byte, bool) {
	j := k - len(msg) - 2
	if j < 0 {
		return nil, false
	}
	em := make([]byte, 0, k)
	if j == 0 {
		em = append(em, 0x6a)
	} else {
		em = append(em, 0x6b)
		em = append(em, bytes.Repeat([]byte{0xbb}, j-1)...)
		em = append(em, 0xba)
	}
	em = append(em, msg...)
	return append(em, 0xcc), true
}

func unpadX931(em []byte) ([]byte, error) {
	if em[len(em)-1] != 0xcc {
		return nil, ErrX931
	}
	switch body := em[1 : len(em)-1]; em[0] {
	case 0x6a:
		return body, nil
	case 0x6b:
		i := 0
		for i < len(body) && body[i] == 0xbb {
			i++
		}
		if i == 0 || i+1 >= len(body) || body[i] != 0xba { // OpenSSL wants one BB and a message at least
			return nil, ErrX931
		}
		return body[i+1:], nil
	}
	return nil, ErrX931
}
