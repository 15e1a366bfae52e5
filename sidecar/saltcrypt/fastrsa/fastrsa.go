package fastrsa

import (
	"bytes"
	"crypto/rsa"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/big"
	"slices"
	"sync/atomic"

	"filippo.io/bigmod"
)

const (
	keyBits   = 2048
	primeBits = keyBits / 2
	primeSize = primeBits / 8

	digitBits = 52
	digits    = 20 // 1040 bits: sixteen to spare, so that sums need no reduction under way
	lanes     = 24 // quadwords of a number: a multiple of eight for the one engine, of four for the other
	mask      = 1<<digitBits - 1

	windowBits = 5
	windows    = (primeBits + windowBits - 1) / windowBits
)

// ErrFaulty means that a result was wrong, which nothing but broken hardware explains.
var ErrFaulty = errors.New("RSA private operation gave a wrong result: faulty hardware?")

// ErrRange means that a number is none modulo the key.
var ErrRange = errors.New("number is not smaller than the modulus")

// engine is what multiplies. Each has its own order of digits.
type engine byte

const (
	ifma engine = 1 + iota // AVX-512 IFMA
	fma                    // AVX2 and FMA, in floating point
)

func (e engine) String() string {
	switch e {
	case ifma:
		return "AVX-512 IFMA"
	case fma:
		return "AVX2"
	}
	return "none"
}

// lane is where a digit is, of which the lowest is number 0.
func (e engine) lane(digit int) int {
	if e == fma {
		return digit%5*4 + digit/5
	}
	return digit
}

// pair is a number modulo each of the primes, in digits.
type pair [2 * lanes]uint64

func (p *pair) of(i int) []uint64 { return p[i*lanes:][:lanes:lanes] }

// moduli are the primes, as the assembly finds them.
type moduli struct {
	digits    pair
	doubles   pair      // the digits in floating point
	negatives [2]uint64 // -1/prime modulo 2^52
}

// exponent is in windows, high ones first.
type exponent [windows]byte

// Key is a private key. It prints as [redacted].
type Key struct {
	n, p, q *bigmod.Modulus
	qinv    *bigmod.Nat // of q, modulo p
	qn      *bigmod.Nat // q, modulo n
	e       uint
	faults  atomic.Uint64

	engine    engine
	moduli    moduli
	squares   pair // 2^2080 modulo the primes, which makes Montgomery's form
	uppers    pair // 2^(1024+2080), which makes it of the upper half of a number
	exponents [2]exponent
}

// New prepares a key for the fastest engine that gives a right result; nil where there is none, and for a key that has not two primes of 1024 bits.
// The key must be valid and precomputed.
func New(key *rsa.PrivateKey) *Key {
	for _, e := range engines {
		k := newKey(key, e)
		if k == nil {
			return nil
		}
		if _, err := k.private(trial); err == nil {
			return k
		}
	}
	return nil
}

// trial is a number that each engine shows with what it can do: private looks at its results itself.
var trial = bytes.Repeat([]byte{0x5a}, keyBits/8)

func newKey(key *rsa.PrivateKey, e engine) *Key {
	if len(key.Primes) != 2 || key.N.BitLen() != keyBits || key.Precomputed.Qinv == nil {
		return nil
	}
	p, q := key.Primes[0], key.Primes[1]
	if p.BitLen() != primeBits || q.BitLen() != primeBits || key.E < 3 {
		return nil
	}
	k := &Key{e: uint(key.E), engine: e}
	var errs [5]error
	k.n, errs[0] = bigmod.NewModulus(key.N.Bytes())
	k.p, errs[1] = bigmod.NewModulus(p.Bytes())
	k.q, errs[2] = bigmod.NewModulus(q.Bytes())
	if errors.Join(errs[:3]...) != nil {
		return nil
	}
	k.qinv, errs[3] = bigmod.NewNat().SetBytes(key.Precomputed.Qinv.FillBytes(make([]byte, primeSize)), k.p)
	k.qn, errs[4] = bigmod.NewNat().SetBytes(q.FillBytes(make([]byte, keyBits/8)), k.n)
	if errors.Join(errs[:]...) != nil {
		return nil
	}
	word := new(big.Int).Lsh(big.NewInt(1), digitBits)
	square := new(big.Int).Lsh(big.NewInt(1), 2*digits*digitBits)
	for i, prime := range []*big.Int{p, q} {
		e.split(k.moduli.digits.of(i), prime.Bytes())
		for j, digit := range k.moduli.digits.of(i) {
			k.moduli.doubles.of(i)[j] = math.Float64bits(float64(digit))
		}
		inverse := new(big.Int).ModInverse(prime, word)
		k.moduli.negatives[i] = new(big.Int).Sub(word, inverse).Uint64()
		e.split(k.squares.of(i), new(big.Int).Mod(square, prime).FillBytes(make([]byte, primeSize)))
		upper := new(big.Int).Lsh(square, primeBits)
		e.split(k.uppers.of(i), upper.Mod(upper, prime).FillBytes(make([]byte, primeSize)))
	}
	k.exponents[0].set(key.Precomputed.Dp)
	k.exponents[1].set(key.Precomputed.Dq)
	return k
}

func (x *exponent) set(d *big.Int) {
	for i := range x {
		for b := range windowBits {
			x[i] |= byte(d.Bit((windows-1-i)*windowBits+b)) << b
		}
	}
}

// Instructions names what multiplies: "AVX-512 IFMA" or "AVX2".
func (k *Key) Instructions() string { return k.engine.String() }

// Format prints [redacted] for every verb.
func (k *Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[redacted]") }

// LogValue keeps keys out of structured logs.
func (k *Key) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// Faults counts results that were wrong.
func (k *Key) Faults() uint64 { return k.faults.Load() }

// Private is c to the power of the private exponent: 256 bytes, the highest first, and as many out. Errors: ErrRange, ErrFaulty.
func (k *Key) Private(c []byte) ([]byte, error) {
	m, err := k.private(c)
	if errors.Is(err, ErrFaulty) {
		k.faults.Add(1)
	}
	return m, err
}

func (k *Key) private(c []byte) ([]byte, error) {
	if len(c) != k.n.Size() {
		return nil, ErrRange
	}
	number, err := bigmod.NewNat().SetBytes(c, k.n)
	if err != nil {
		return nil, ErrRange
	}
	power := k.montgomery(c)
	defer clear(power[:])
	k.exp(&power)
	var room [primeSize]byte
	mp, errP := bigmod.NewNat().SetOverflowingBytes(k.engine.join(&room, power.of(0)), k.p)
	mq, errQ := bigmod.NewNat().SetOverflowingBytes(k.engine.join(&room, power.of(1)), k.q)
	if errP != nil || errQ != nil {
		return nil, ErrFaulty
	}
	// Garner: m = mq + q·((mp-mq)/q modulo p). Both primes have as many bits, so that mq is less than twice p.
	less, err := bigmod.NewNat().SetOverflowingBytes(mq.Bytes(k.q), k.p)
	if err != nil {
		return nil, ErrFaulty
	}
	clear(room[:])
	h := mp.Sub(less, k.p).Mul(k.qinv, k.p)
	m := h.ExpandFor(k.n).Mul(k.qn, k.n).Add(mq.ExpandFor(k.n), k.n)
	if bigmod.NewNat().ExpShortVarTime(m, k.e, k.n).Equal(number) != 1 {
		return nil, ErrFaulty
	}
	return m.Bytes(k.n), nil
}

// montgomery is Montgomery's form of c modulo each prime: of c's halves, added. Each half is less than twice a prime, which has its highest bit set,
// and so is each product; the sum is less than four times, which the sixteen bits to spare have room for.
func (k *Key) montgomery(c []byte) pair {
	var upper, lower pair
	for i := range 2 {
		k.engine.split(upper.of(i), c[:primeSize])
		k.engine.split(lower.of(i), c[primeSize:])
	}
	k.multiply(&upper, &upper, &k.uppers)
	k.multiply(&lower, &lower, &k.squares)
	for i := range 2 {
		a, b, carry := upper.of(i), lower.of(i), uint64(0)
		for j := range digits {
			at := k.engine.lane(j)
			carry += a[at] + b[at]
			a[at] = carry & mask
			carry >>= digitBits
		}
	}
	return upper
}

// exp raises each number of x, in Montgomery's form, to the power of its exponent, and leaves that form. Products grow to less than twice the primes,
// and the last one, with one, to a prime at most.
func (k *Key) exp(x *pair) {
	var table [1 << windowBits]pair
	one := pair{0: 1, lanes: 1}
	k.multiply(&table[0], &one, &k.squares)
	table[1] = *x
	for i := 2; i < len(table); i++ {
		k.multiply(&table[i], &table[i-1], &table[1])
	}
	var power, factor pair
	k.engine.choose(&power, &table, uint64(k.exponents[0][0]), uint64(k.exponents[1][0]))
	for i := 1; i < windows; i++ {
		for range windowBits {
			k.multiply(&power, &power, &power)
		}
		k.engine.choose(&factor, &table, uint64(k.exponents[0][i]), uint64(k.exponents[1][i]))
		k.multiply(&power, &power, &factor)
	}
	k.multiply(x, &power, &one)
	for i := range table {
		clear(table[i][:])
	}
	clear(power[:])
	clear(factor[:])
	k.multiply(&factor, &one, &one) // over what the assembly has left in registers and its frame
}

func (k *Key) multiply(dst, a, b *pair) { k.engine.multiply(dst, a, b, &k.moduli) }

// split makes digits of a number of primeSize bytes, the highest first.
func (e engine) split(dst []uint64, number []byte) {
	var low [primeSize + 8]byte
	copy(low[:], number)
	slices.Reverse(low[:primeSize])
	for i := range digits {
		bit := i * digitBits
		dst[e.lane(i)] = binary.LittleEndian.Uint64(low[bit/8:]) >> (bit % 8) & mask
	}
	clear(low[:])
}

// join is the reverse of split, for a number that fits into room. Its digits may be larger than digits are.
func (e engine) join(room *[primeSize]byte, number []uint64) []byte {
	clear(room[:])
	var carry uint64
	for i := range digits {
		bit := i * digitBits
		carry += number[e.lane(i)]
		digit := carry & mask << (bit % 8)
		carry >>= digitBits
		for at := bit / 8; at < min(bit/8+8, primeSize); at++ {
			room[primeSize-1-at] |= byte(digit)
			digit >>= 8
		}
	}
	return room[:]
}
