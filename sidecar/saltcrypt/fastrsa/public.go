package fastrsa

import (
	"bytes"
	"crypto/rsa"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"sync"
)

// Public is a public key of 2048 bits. It takes 768 bytes beside the numbers of the key.
type Public struct {
	e      uint
	n      []big.Word       // the key's; quadwords, where there are engines
	square [maxLanes]uint64 // R² modulo n, which makes Montgomery's form
	moduli [maxLanes + 8]uint64
}

// NewPublic prepares a key, in 3 µs; nil where the processor has no AVX2 and FMA, or these give wrong results, for a modulus that is even or has not 2048
// bits, and for an exponent that is even or not from 3 to 2^31-1. Of what a public key should be nothing else is asked. The key must stay as it is.
func NewPublic(key *rsa.PublicKey) *Public {
	if !slices.Contains(engines, fma) || !publicWorks() {
		return nil
	}
	return newPublic(key)
}

// publicWorks is whether the engine, which private operations may not have tried, gives a right result.
var publicWorks = sync.OnceValue(func() bool {
	n := bytes.Repeat([]byte{0xc5, 0x3a, 0x97}, maxPrimeSize)[:maxPrimeSize]
	p := newPublic(&rsa.PublicKey{N: new(big.Int).SetBytes(n), E: 65537})
	return p != nil && p.right(bytes.Repeat([]byte{0x5a}, maxPrimeSize))
})

// right is whether a power is math/big's.
func (p *Public) right(m []byte) bool {
	got, err := p.Power(m)
	want := new(big.Int).SetBytes(m)
	want.Exp(want, new(big.Int).SetUint64(uint64(p.e)), new(big.Int).SetBits(slices.Clone(p.n)))
	return err == nil && bytes.Equal(got, want.FillBytes(make([]byte, maxPrimeSize)))
}

// squareOfR is R² of the longest shape.
var squareOfR = new(big.Int).Lsh(big.NewInt(1), uint(2*longest.digits*digitBits))

func newPublic(key *rsa.PublicKey) *Public {
	if key.N.BitLen() != longest.bits || key.N.Bit(0) == 0 || key.E < 3 || key.E > math.MaxInt32 || key.E&1 == 0 {
		return nil
	}
	p := &Public{e: uint(key.E), n: key.N.Bits()}
	var room [maxPrimeSize]byte
	longest.split(p.square[:], new(big.Int).Mod(squareOfR, key.N).FillBytes(room[:]))
	copy(p.moduli[:], longest.moduli(key.N))
	return p
}

// Power is m to the power of the public exponent: as many bytes as the modulus has, the highest first, and as many out. It takes the same time whatever
// m is, which may be a secret; the key is none. Errors: ErrRange.
func (p *Public) Power(m []byte) ([]byte, error) {
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	out := make([]byte, maxPrimeSize)
	if err := p.power(w, out, m); err != nil {
		return nil, err
	}
	return out, nil
}

// power leaves noughts in what it takes of the workspace, which need not be noughts before.
//
// R is 2^32 times what n may be at most, so that a product, which is less than n + a·b/R (multiply), is less than n + n/2^32 of m, which is below n, and R²
// modulo n; and less than n + 4·n/2^32 of two such products, which are less than 2·n each. The last bit of an odd exponent asks for a multiplication with
// m: when that is done with m as it came instead of Montgomery's form, it takes the result out of that form as well, and this is less than
// n + 2·n/2^32. It may have more bits than n has. To take n out once, if it is there, is enough.
func (p *Public) power(w *workspace, out, m []byte) error {
	if len(m) != maxPrimeSize {
		return ErrRange
	}
	var words, less quadwords
	words.set(m)
	below := words.minus(&less, p.n)
	clear(words[:])
	clear(less[:])
	if below == 0 {
		return ErrRange
	}

	room := w[:3*maxLanes]
	plain, factor, x := room[:maxLanes], room[maxLanes:2*maxLanes], room[2*maxLanes:]
	longest.split(plain, m)
	multiplyOne(factor, plain, p.square[:], p.moduli[:])
	copy(x, factor)
	times := uint64(0)
	for i := bits.Len(p.e) - 2; i >= 0; i-- {
		times++
		if p.e>>i&1 == 0 {
			continue
		}
		squareOne(x, p.moduli[:], times)
		times = 0
		if i == 0 {
			factor = plain
		}
		multiplyOne(x, x, factor, p.moduli[:])
	}
	longest.quadwords(&words, x)
	words.reduce(p.n)
	words.bytes(out)

	clear(room)
	multiplyOne(x, x, x, noModuli[:]) // over what the assembly has left in registers and its frame, of m too
	return nil
}

// minus makes dst what is left without n; 1 when that is negative.
func (q *quadwords) minus(dst *quadwords, n []big.Word) (borrow uint64) {
	for i := range dst {
		word := uint64(0)
		if i < len(n) {
			word = uint64(n[i])
		}
		dst[i], borrow = bits.Sub64(q[i], word, borrow)
	}
	return borrow
}

// reduce takes n out once, if it is there.
func (q *quadwords) reduce(n []big.Word) {
	var less quadwords
	keep := -q.minus(&less, n)
	for i := range q {
		q[i] = q[i]&keep | less[i]&^keep
	}
}
