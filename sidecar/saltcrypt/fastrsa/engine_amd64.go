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

// multiply is a·b/2^1040 modulo each prime, plus that prime at most, for both numbers of a pair. a and b may be up to four times the prime: what comes
// out is less than the prime and a·b/2^1040 together, which is a 4096th of it there. dst may be a or b.
func (e engine) multiply(dst, a, b *pair, m *moduli) {
	if e == ifma {
		multiplyIFMA(dst, a, b, m)
	} else {
		multiplyFMA(dst, a, b, m)
	}
}

// choose takes the first number of one entry and the second number of another. Which they are cannot be seen from outside.
func (e engine) choose(dst *pair, table *[1 << windowBits]pair, first, second uint64) {
	if e == ifma {
		chooseIFMA(dst, table, first, second)
	} else {
		chooseFMA(dst, table, first, second)
	}
}

//go:noescape
func multiplyIFMA(dst, a, b *pair, m *moduli)

//go:noescape
func chooseIFMA(dst *pair, table *[1 << windowBits]pair, first, second uint64)

//go:noescape
func multiplyFMA(dst, a, b *pair, m *moduli)

//go:noescape
func chooseFMA(dst *pair, table *[1 << windowBits]pair, first, second uint64)
