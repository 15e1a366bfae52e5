//go:build !purego

package fastrsa

import "github.com/klauspost/cpuid/v2"

// engines are those whose instructions this processor has, and whose registers the operating system keeps, the fastest first.
var engines = supported()

func supported() []engine {
	var all []engine
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512VL, cpuid.AVX512IFMA, cpuid.BMI2) {
		all = append(all, ifma)
	}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3) {
		all = append(all, fma)
	}
	return all
}

// multiply is a·b/R modulo each prime, plus that prime at most, for both numbers of a pair. a and b may be up to four times the prime: what comes
// out is less than the prime and a·b/R together, which is a 4096th of it there. dst may be a or b.
func (s shape) multiply(dst, a, b pair, m []uint64) {
	if s.engine == ifma {
		multiplyIFMA(&dst[0], &a[0], &b[0], &m[0])
		return
	}
	switch q := s.lanes; s.digits {
	case 20:
		multiply5(&dst[0], &a[0], &b[0], &m[0], products5)
	case 32:
		multiply8(&dst[0], &a[0], &b[0], &m[0], products8)
		multiply8(&dst[q], &a[q], &b[q], &m[len(m)/2], products8)
	case 40:
		multiply10(&dst[0], &a[0], &b[0], &m[0], products10)
		multiply10(&dst[q], &a[q], &b[q], &m[len(m)/2], products10)
	}
}

// square multiplies x with itself so many times, of which there is one at least.
func (s shape) square(x pair, m []uint64, times uint64) {
	if s.engine == ifma {
		squareIFMA(&x[0], &m[0], times)
		return
	}
	switch q := s.lanes; s.digits {
	case 20:
		square5(&x[0], &x[0], &m[0], squares5, times)
	case 32:
		square8(&x[0], &x[0], &m[0], squares8, times)
		square8(&x[q], &x[q], &m[len(m)/2], squares8, times)
	case 40:
		square10(&x[0], &x[0], &m[0], squares10, times)
		square10(&x[q], &x[q], &m[len(m)/2], squares10, times)
	}
}

// multiplyOne is multiply for one number of the longest shape.
func multiplyOne(dst, a, b []uint64, m []uint64) {
	multiply10(&dst[0], &a[0], &b[0], &m[0], products10)
}

// squareOne is square for one number of the longest shape.
func squareOne(x []uint64, m []uint64, times uint64) {
	square10(&x[0], &x[0], &m[0], squares10, times)
}

// choose takes the first number of one entry and the second number of another. Which they are cannot be seen from outside.
func (s shape) choose(dst, table pair, first, second uint64) {
	switch {
	case s.engine == ifma:
		chooseIFMA(&dst[0], &table[0], first, second)
	case s.lanes == 20:
		chooseFMA(&dst[0], &table[0], 2*20*8, first, second)
	case s.lanes == 40: // as much as two numbers of twenty
		chooseFMA(&dst[0], &table[0], 2*40*8, first, first)
		chooseFMA(&dst[40], &table[40], 2*40*8, second, second)
	}
}

// multiply is the shapes' for eight numbers. o may be a or b.
func (o *octet) multiply(a, b *octet, m *[21 * eight]uint64) {
	multiplyEight(&o[0], &a[0], &b[0], &m[0])
}

// square multiplies o with itself so many times, of which there is one at least.
func (o *octet) square(m *[21 * eight]uint64, columns *[2 * len(octet{})]uint64, times uint64) {
	squareEight(&o[0], &m[0], &columns[0], times)
}

// chosen takes from the table what w.which wants for each number. What that is cannot be seen from outside.
func (w *fourspace) chosen(dst *octet) {
	chooseEight(&dst[0], &w.table[0][0], &w.which[0])
}

// bias is what the FMA engine's sums have to begin and to end with, for they add up the bits of doubles, constants and all. A register is the v-th one
// before a round and the one before it afterwards; when it has been the first it becomes the last. What it begins with then makes it nought
// but for digits whenever it is the second one before a round, which is when its lowest lane is asked for. All lanes go through the same, but for the
// highest one, which is empty when a register becomes the last. The assembly knows where the fields are.
type bias struct {
	turn  [10][4]uint64 // is added when the register becomes the last, by the number of the round modulo the registers
	begin [10]uint64    // is in the registers before the first round, and again after the last one; two numbers of five have the same twice
	end   [10]uint64    // takes that out; makes digits from 0 to 2^52, 2^51 too large; and makes what they carry positive: 2^10 too large, which the next one has less
}

var (
	products5, squares5   = newBias(5, false), newBias(5, true)
	products8, squares8   = newBias(8, false), newBias(8, true)
	products10, squares10 = newBias(10, false), newBias(10, true)
)

func newBias(registers int, square bool) *bias {
	const lower, upper = 0x433 << 52, 0x4678 << 48 // 2^52 and 3·2^103
	// products counts those of the r-th registers of a and the modulus in a round: squares make one of two that are the same.
	products := func(round, r int) uint64 {
		after := (r - round + 2*registers) % registers
		if square && (2*after > registers || 2*after == registers && round >= after) {
			return 1
		}
		return 2
	}
	// adds is what a round adds to the r-th register: lower halves of its own products and upper ones of those before.
	adds := func(round, r int) (sum uint64) {
		round %= registers
		if r < registers {
			sum += lower * products(round, r)
		}
		if r > 0 {
			sum += upper * products(round, r-1)
		}
		return sum
	}
	b := new(bias)
	for r := range registers {
		before := adds(r+registers-1, 1) + adds(r, 0)
		whole := before
		for i := 2; i <= registers; i++ {
			whole += adds(r+registers-i, i)
		}
		b.turn[r] = [4]uint64{-whole, -whole, -whole, before - whole}
		if r == 0 {
			b.begin[r] = adds(registers-1, 1)
		}
		for round := range r - 1 {
			b.begin[r] -= adds(round, r-round)
		}
		b.end[r] = 1<<62 + 1<<51 - 1<<10 - b.begin[r]
	}
	for r := registers; r < len(b.begin); r++ { // of a second number, or nobody's
		b.begin[r], b.end[r] = b.begin[r-registers], b.end[r-registers]
	}
	return b
}

//go:noescape
func multiplyIFMA(dst, a, b, m *uint64)

//go:noescape
func squareIFMA(x, m *uint64, times uint64)

//go:noescape
func chooseIFMA(dst, table *uint64, first, second uint64)

//go:noescape
func multiplyEight(dst, a, b, m *uint64)

//go:noescape
func squareEight(x, m, columns *uint64, times uint64)

//go:noescape
func chooseEight(dst, table, which *uint64)

//go:noescape
func multiply5(dst, a, b, m *uint64, c *bias)

//go:noescape
func square5(dst, a, m *uint64, c *bias, times uint64)

//go:noescape
func multiply8(dst, a, b, m *uint64, c *bias)

//go:noescape
func square8(dst, a, m *uint64, c *bias, times uint64)

//go:noescape
func multiply10(dst, a, b, m *uint64, c *bias)

//go:noescape
func square10(dst, a, m *uint64, c *bias, times uint64)

//go:noescape
func chooseFMA(dst, table *uint64, stride, first, second uint64)
