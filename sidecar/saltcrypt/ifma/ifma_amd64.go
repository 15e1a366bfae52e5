//go:build !purego

package ifma

import "github.com/klauspost/cpuid/v2"

// supported says that this processor has what the assembly uses, and that the operating system keeps the wide registers.
var supported = cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512IFMA, cpuid.BMI2)

// multiply is a·b/2^1040 modulo m, plus m at most, for both numbers of a pair, each less than twice its modulus. k is -1/m modulo 2^52.
// dst may be a or b.
//
//go:noescape
func multiply(dst, a, b, m *pair, k *[2]uint64)

// choose takes the first number of one entry and the second number of another. Which they are cannot be seen from outside.
//
//go:noescape
func choose(dst *pair, table *[1 << windowBits]pair, first, second uint64)
