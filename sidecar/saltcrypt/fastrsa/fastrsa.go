package fastrsa

import (
	"bytes"
	"crypto/rsa"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"

	"filippo.io/bigmod"
)

const (
	maxPrimeBits = 2048
	maxPrimeSize = maxPrimeBits / 8
	maxLanes     = 40

	digitBits = 52
	mask      = 1<<digitBits - 1

	windowBits = 5
	entries    = 1 << windowBits
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

// shape is how an engine has numbers modulo a prime.
type shape struct {
	engine engine
	bits   int    // of a prime
	digits int    // R is 2^(52·digits): so many bits more than a prime has, sixteen at least, that sums need no reduction under way
	lanes  int    // quadwords of a number
	half   uint64 // digits are from -half on
}

// shapes are those that there are: keys of 2048, 3072 and 4096 bits. Registers have four lanes or eight.
var shapes = []shape{
	{engine: ifma, bits: 1024, digits: 20, lanes: 24},
	{engine: fma, bits: 1024, digits: 20, lanes: 20, half: 1 << (digitBits - 1)},
	{engine: fma, bits: 1536, digits: 32, lanes: 40, half: 1 << (digitBits - 1)}, // as wide as the next, so that there is one chooseFMA
	longest,
}

// longest is also for public keys of half as many bits: such a modulus is as long as a prime of the longest keys.
var longest = shape{engine: fma, bits: maxPrimeBits, digits: 40, lanes: maxLanes, half: 1 << (digitBits - 1)}

func (s shape) size() int { return s.bits / 8 }

// lane is where a digit is, of which the lowest is number 0.
func (s shape) lane(digit int) int {
	if s.engine == fma {
		return digit%(s.digits/4)*4 + digit/(s.digits/4)
	}
	return digit
}

// next is the lane of the digit after the one in a lane.
func (s shape) next(lane int) int {
	switch {
	case s.engine != fma:
		return lane + 1
	case lane+4 < s.digits:
		return lane + 4
	}
	return lane + 5 - s.digits
}

// pair is a number modulo each of the primes, in digits. A table is pairs behind each other.
type pair []uint64

func (s shape) pair() pair { return make(pair, 2*s.lanes) }

func (p pair) of(i int) []uint64 { return p[i*len(p)/2:][:len(p)/2] }

func (p pair) entry(i int) pair { return p[i*len(p)/entries:][:len(p)/entries] }

// workspace is room for the table of an exponentiation and four pairs, all noughts when nobody has it.
type workspace [(entries + 4) * 2 * maxLanes]uint64

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// noModuli are as many noughts as the longest moduli have.
var noModuli [2 * (maxLanes + 8)]uint64

// Key is a private key. It prints as [redacted].
type Key struct {
	n, p, q *bigmod.Modulus
	qinv    *bigmod.Nat // of q, modulo p
	qn      *bigmod.Nat // q, modulo n
	e       uint
	public  *Public // nil: bigmod checks results
	faults  atomic.Uint64

	shape     shape
	moduli    []uint64  // the primes, as the assembly finds them
	squares   pair      // R² modulo the primes, which makes Montgomery's form
	uppers    pair      // R² times 2^bits, which makes it of the upper half of a number
	exponents [2][]byte // in windows, high ones first
	four      *four     // nil: one at a time
}

// New prepares a key for the fastest engine that gives a right result; nil where there is none, and for a key that has not two primes of 1024, 1536 or
// 2048 bits. The key must be valid and precomputed.
func New(key *rsa.PrivateKey) *Key {
	for _, e := range engines {
		k := newKey(key, e)
		if k == nil {
			continue
		}
		if k.works() {
			return k
		}
	}
	return nil
}

// works is whether the engine gives right results: numbers that it shows with what it can do, for private looks at its results itself. Where it cannot do
// four at once, it does one.
func (k *Key) works() bool {
	var numbers [together][]byte
	for i := range numbers {
		numbers[i] = bytes.Repeat([]byte{0x5a - byte(i)}, k.n.Size())
	}
	if _, err := k.private(numbers[0]); err != nil {
		return false
	}
	if k.four != nil {
		if _, errs := k.PrivateAll(numbers[:]); errors.Join(errs...) != nil {
			k.four = nil
		}
		k.faults.Store(0) // these were none of the caller's
	}
	return true
}

func newKey(key *rsa.PrivateKey, e engine) *Key {
	if len(key.Primes) != 2 || key.Precomputed.Qinv == nil || key.E < 3 {
		return nil
	}
	p, q := key.Primes[0], key.Primes[1]
	at := slices.IndexFunc(shapes, func(s shape) bool {
		return s.engine == e && s.bits == p.BitLen() && s.bits == q.BitLen() && 2*s.bits == key.N.BitLen()
	})
	if at < 0 {
		return nil
	}
	s := shapes[at]
	k := &Key{e: uint(key.E), public: NewPublic(&key.PublicKey), shape: s, squares: s.pair(), uppers: s.pair()}
	var errs [5]error
	k.n, errs[0] = bigmod.NewModulus(key.N.Bytes())
	k.p, errs[1] = bigmod.NewModulus(p.Bytes())
	k.q, errs[2] = bigmod.NewModulus(q.Bytes())
	if errors.Join(errs[:3]...) != nil {
		return nil
	}
	k.qinv, errs[3] = bigmod.NewNat().SetBytes(key.Precomputed.Qinv.FillBytes(make([]byte, s.size())), k.p)
	k.qn, errs[4] = bigmod.NewNat().SetBytes(q.FillBytes(make([]byte, 2*s.size())), k.n)
	if errors.Join(errs[:]...) != nil {
		return nil
	}
	k.moduli = s.moduli(p, q)
	square := new(big.Int).Lsh(big.NewInt(1), uint(2*s.digits*digitBits))
	upper := new(big.Int).Lsh(square, uint(s.bits))
	for i, prime := range []*big.Int{p, q} {
		s.split(k.squares.of(i), new(big.Int).Mod(square, prime).FillBytes(make([]byte, s.size())))
		s.split(k.uppers.of(i), new(big.Int).Mod(upper, prime).FillBytes(make([]byte, s.size())))
	}
	dp, dq := key.Precomputed.Dp, key.Precomputed.Dq
	k.exponents = [2][]byte{s.windows(dp, windowBits), s.windows(dq, windowBits)}
	k.four = k.newFour(dp, dq)
	return k
}

// moduli has the primes as the assembly wants them: for IFMA the digits and then -1/prime modulo 2^52; for FMA in blocks of what one call works with,
// which are maxLanes digits as doubles, of one prime or of both, and then of each -1/prime, the lowest digit times 2^12, the second one, and a nought.
func (s shape) moduli(primes ...*big.Int) []uint64 {
	all := make([]uint64, 0, len(primes)*(s.lanes+8))
	scalars := make([]uint64, 0, 8)
	var room [maxPrimeSize]byte
	var lanes [maxLanes]uint64
	digits := lanes[:s.lanes]
	for _, prime := range primes {
		s.split(digits, prime.FillBytes(room[:s.size()]))
		// Newton's way to 1/prime: what is odd is its own inverse modulo 8, and three more bits become six, twelve, 24, 48, 96.
		low := digits[s.lane(0)]
		inverse := low
		for range 5 {
			inverse *= 2 - low*inverse
		}
		negative := -inverse & mask
		if s.engine == ifma {
			all, scalars = append(all, digits...), append(scalars, negative)
			continue
		}
		for _, digit := range digits {
			all = append(all, math.Float64bits(float64(int64(digit))))
		}
		scalars = append(scalars, negative, digits[s.lane(0)]<<12, digits[s.lane(1)], 0)
		if s.lanes == maxLanes {
			all, scalars = append(append(all, scalars...), 0, 0, 0, 0), scalars[:0]
		}
	}
	all = append(all, scalars...)
	clear(room[:])
	clear(lanes[:])
	clear(scalars[:cap(scalars)])
	return all
}

// windows are those of an exponent, of so many bits, high ones first.
func (s shape) windows(d *big.Int, size int) []byte {
	x := make([]byte, (s.bits+size-1)/size)
	for i := range x {
		for b := range size {
			x[i] |= byte(d.Bit((len(x)-1-i)*size+b)) << b
		}
	}
	return x
}

// Instructions names what multiplies: "AVX-512 IFMA" or "AVX2".
func (k *Key) Instructions() string { return k.shape.engine.String() }

// Format prints [redacted] for every verb.
func (k *Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[redacted]") }

// LogValue keeps keys out of structured logs.
func (k *Key) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// Faults counts results that were wrong.
func (k *Key) Faults() uint64 { return k.faults.Load() }

// Private is c to the power of the private exponent: as many bytes as the modulus has, the highest first, and as many out. Errors: ErrRange, ErrFaulty.
func (k *Key) Private(c []byte) ([]byte, error) {
	m, err := k.private(c)
	if errors.Is(err, ErrFaulty) {
		k.faults.Add(1)
	}
	return m, err
}

func (k *Key) private(c []byte) ([]byte, error) {
	number := bigmod.NewNat()
	if !k.takes(number, c) {
		return nil, ErrRange
	}
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	defer clear(w[:])
	return k.combine(w, k.exp(w, c), number, c)
}

// takes makes the number of c, unless it is none modulo the key.
func (k *Key) takes(number *bigmod.Nat, c []byte) bool {
	if len(c) != k.n.Size() {
		return false
	}
	_, err := number.SetBytes(c, k.n)
	return err == nil
}

// combine makes the result of what it is modulo each prime, and looks whether it leads back to the number, c. It needs the workspace when it looks.
func (k *Key) combine(w *workspace, power pair, number *bigmod.Nat, c []byte) ([]byte, error) {
	var room [maxPrimeSize]byte
	mp, errP := bigmod.NewNat().SetOverflowingBytes(k.shape.join(&room, power.of(0)), k.p)
	mq, errQ := bigmod.NewNat().SetOverflowingBytes(k.shape.join(&room, power.of(1)), k.q)
	clear(room[:])
	if errP != nil || errQ != nil {
		return nil, ErrFaulty
	}
	// Garner: m = mq + q·((mp-mq)/q modulo p). Both primes have as many bits, so that mq is less than twice p.
	less, err := bigmod.NewNat().SetOverflowingBytes(mq.Bytes(k.q), k.p)
	if err != nil {
		return nil, ErrFaulty
	}
	h := mp.Sub(less, k.p).Mul(k.qinv, k.p)
	m := h.ExpandFor(k.n).Mul(k.qn, k.n).Add(mq.ExpandFor(k.n), k.n)
	out := m.Bytes(k.n)
	if k.public == nil {
		if bigmod.NewNat().ExpShortVarTime(m, k.e, k.n).Equal(number) != 1 {
			return nil, ErrFaulty
		}
		return out, nil
	}
	var again [maxPrimeSize]byte
	if k.public.power(w, again[:], out) != nil || subtle.ConstantTimeCompare(again[:], c) != 1 {
		return nil, ErrFaulty
	}
	return out, nil
}

// exp is c to the power of each exponent, modulo its prime and less than twice that. Montgomery's form of c is of its halves, added. Each half is less
// than twice a prime, which has its highest bit set, and so is each product; the sum is less than four times, which the bits to spare have room for.
// Products grow to less than twice the primes, and the last one, with one, to a prime at most.
func (k *Key) exp(w *workspace, c []byte) pair {
	s, n := k.shape, 2*k.shape.lanes
	table := pair(w[:entries*n])
	upper, power, factor, one := pair(w[entries*n:][:n]), pair(w[(entries+1)*n:][:n]), pair(w[(entries+2)*n:][:n]), pair(w[(entries+3)*n:][:n])
	x := table.entry(1)
	for i := range 2 {
		s.split(upper.of(i), c[:s.size()])
		s.split(x.of(i), c[s.size():])
		one.of(i)[0] = 1
	}
	s.multiply(upper, upper, k.uppers, k.moduli)
	s.multiply(x, x, k.squares, k.moduli)
	for i := range x {
		x[i] += upper[i]
	}
	s.carry(x.of(0))
	s.carry(x.of(1))

	s.multiply(table.entry(0), one, k.squares, k.moduli)
	for i := 2; i < entries; i++ {
		s.multiply(table.entry(i), table.entry(i-1), x, k.moduli)
	}
	first, second := k.exponents[0], k.exponents[1]
	s.choose(power, table, uint64(first[0]), uint64(second[0]))
	for i := 1; i < len(first); i++ {
		s.square(power, k.moduli, windowBits)
		s.choose(factor, table, uint64(first[i]), uint64(second[i]))
		s.multiply(power, power, factor, k.moduli)
	}
	s.multiply(power, power, one, k.moduli)
	// Over what the assembly has left in registers and in its frames, which need not be in the same place for both: the primes too.
	s.square(factor, noModuli[:], 1)
	s.multiply(factor, one, one, noModuli[:])
	return power
}

// split makes digits of a number of size bytes at most, the highest first.
func (s shape) split(dst []uint64, number []byte) {
	var room [8 + maxPrimeSize]byte // the number ends where it ends
	copy(room[len(room)-len(number):], number)
	at := 0
	for i := range s.digits {
		dst[at] = 0
		if bit := i * digitBits; bit < s.bits {
			dst[at] = binary.BigEndian.Uint64(room[maxPrimeSize-bit/8:]) >> (bit % 8) & mask
		}
		at = s.next(at)
	}
	clear(room[:])
	s.carry(dst)
}

// carry makes digits of sums, which may have a sign.
func (s shape) carry(x []uint64) {
	var carry int64
	at := 0
	for range s.digits {
		carry += int64(x[at])
		digit := int64((uint64(carry)+s.half)&mask - s.half)
		x[at] = uint64(digit)
		carry = (carry - digit) >> digitBits
		at = s.next(at)
	}
}

// quadwords are those of a number that is none too large for any shape, the lowest first, and one that is always nought.
type quadwords [maxLanes*digitBits/64 + 2]uint64

// quadwords are a number's, which is positive. Its digits may have a sign, or be larger than digits are.
func (s shape) quadwords(dst *quadwords, number []uint64) {
	clear(dst[:])
	var carry int64
	at := 0
	for i := range uint(s.digits) {
		carry += int64(number[at])
		digit := uint64(carry) & mask
		carry >>= digitBits
		bit := i * digitBits
		dst[bit/64] |= digit << (bit % 64)
		dst[bit/64+1] |= digit >> (64 - bit%64) // nothing where it is all in the one before
		at = s.next(at)
	}
}

// join is the reverse of split, for a number that fits into as many bytes.
func (s shape) join(room *[maxPrimeSize]byte, number []uint64) []byte {
	var words quadwords
	s.quadwords(&words, number)
	out := room[:s.size()]
	words.bytes(out)
	clear(words[:])
	return out
}

// set takes a number from its bytes, the highest first, of which there are eight times as many as of some quadwords.
func (q *quadwords) set(number []byte) {
	clear(q[:])
	for i := range len(number) / 8 {
		q[i] = binary.BigEndian.Uint64(number[len(number)-8*(i+1):])
	}
}

// bytes are as many of them as there is room for, the highest first.
func (q *quadwords) bytes(dst []byte) {
	for i := range len(dst) / 8 {
		binary.BigEndian.PutUint64(dst[len(dst)-8*(i+1):], q[i])
	}
}
