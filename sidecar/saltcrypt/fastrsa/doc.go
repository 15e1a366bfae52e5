// Package fastrsa does the RSA private operation for keys of 2048, 3072 and 4096 bits with the vector instructions of amd64, in about a third of the
// time that Go's crypto/rsa takes, and the public one for keys of 2048 bits in a quarter. Two private operations are nearly all that a sign-in costs.
//
// It owns the two exponentiations, one for each prime and with 2048 bits both at once, as they wait for their own results at every step; digits have
// 52 bits, products are reduced as they grow (Montgomery's way), windows of the exponent have five bits, or four (four.go). There are two engines: the multiply-add of
// AVX-512 (IFMA), which is made for this, and where it is missing, or the key is longer than 2048 bits, that of AVX2's companion FMA, which is made
// for floating point and gives the halves of a product of 52 bits exactly when it rounds towards zero. Squares, four fifths of all multiplications, have
// functions of their own: of two products that are the same they take one, doubled. Where four numbers are there at once (PrivateAll) IFMA has them, modulo both
// primes, in the eight lanes of its registers, in two thirds of the time of one after the other: nothing waits then for what goes from lane to lane. Everything around the engines
// (what is modulo a prime, the Chinese remainder, the check of longer keys) is filippo.io/bigmod. In goes a number, out comes it to the power of the private
// exponent; padding is the caller's. Where the processor has neither, and for other keys, New says so, and the caller uses crypto/rsa. A public key of 2048
// bits (Public) has a modulus as long as a prime of 4096 bits' keys, and what multiplies modulo those.
//
// Promises: no branch and no address depends on the key or on a number it is used on, and every entry of a table is read whichever is wanted;
// so blinding is not needed, as it is not in crypto/rsa. Floating point takes its time from its operands only where they are denormal, infinite
// or not numbers, which none ever is here: noughts, ones, extremes and random digits were as fast, to a hundredth, on an EPYC of the third generation.
// A result leaves only when the public operation leads back to where it began: one that went wrong would give the primes away. That is modulo the product
// of the primes and not modulo one of them, in other functions than what it looks at: with 2048 bits those of Public, which take 2 % of the time, with
// longer keys bigmod's. Tests and fuzz targets compare with math/big and crypto/rsa. Safe for concurrent use.
package fastrsa
