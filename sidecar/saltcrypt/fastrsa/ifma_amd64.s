//go:build !purego

#include "textflag.h"

// A number is twenty digits of 52 bits, low ones first, in 24 quadwords: three registers of 512 bits, of which the last half is nought.
// Two numbers beside each other, one for each prime, are a pair: 384 bytes.
//
// In multiplyIFMA, for the first prime | the second one:
//
//	SI, SI+192       a                   R8 | R9    the sum's lowest digit, with the carry of those below
//	BX, BX+192       b, digit by digit   AX, CX, DX, R10, R11, R12  scratch; DX is a factor of MULXQ
//	DI, DI+192       moduli; behind both -1/modulus of each
//	R13 2^52-1; R14 the count; R15 is the runtime's where code is linked dynamically
//	Z0-Z2 | Z3-Z5    a                   Z12-Z14 | Z15-Z17  the sum, but for the lowest digit
//	Z6-Z8 | Z9-Z11   moduli              Z24-Z26 | Z27-Z29  what is added to it when it was shifted
//	Z18 | Z19        b's digit           Z20 | Z21 the quotient's, Z22 nought
//
// The sum has the lower halves of the products with b's digit already when that digit's round begins, so that its chain through a round is short: add
// the lower halves of the modulus' products, shift, add the rest, which has a chain of its own.

// LOW finds the quotient's digit, in CX and the vector y, with which the sum's lowest one becomes nought, and the next round's lowest one; R12 is what
// the lowest digit has above its 64 bits. Everything that follows in a round depends on the quotient's digit, so it is reckoned here and not in the vectors, and so
// is what it adds to the second digit, which is the next lowest. What earlier rounds added to that is in lane 1 of the vectors. In this way there are two rounds'
// time for the way from here to the vectors and back, which takes longer than one. VPMADD52 looks at no more than 52 bits of a factor.
#define LOW(offset, k, x, y, acc) \
	MOVQ         acc, CX;             \
	IMULQ        k(DI), CX;           \
	VPBROADCASTQ CX, y;               \
	ANDQ         R13, CX;             \
	MOVQ         CX, DX;              \
	MULXQ        offset(DI), AX, R11; \
	ADDQ         AX, acc;             \
	ADCQ         R11, R12;            \
	SHRQ         $52, acc;            \
	SHLQ         $12, R12;            \
	IMULQ        (offset+8)(DI), CX;  \
	ANDQ         R13, CX;             \
	VPEXTRQ      $1, x, R10;          \
	ADDQ         R10, CX;             \
	ADDQ         CX, acc;             \
	ADDQ         R12, acc

// LOWEST adds the product of a's lowest digit and b's digit to the sum's lowest one, of which the upper half is in R12 then.
#define LOWEST(offset, acc) \
	MOVQ  offset(BX), DX;      \
	MULXQ offset(SI), AX, R12; \
	ADDQ  AX, acc;             \
	ADCQ  $0, R12

// ADDLOW and ADDHIGH add the halves of products, SHIFT moves all digits down by one. The last four digits are half a register: where a
// whole one takes two turns (Zen 4) that is a sixth of the work.
#define ADDLOW(a0, a1, a2, b, b2, r0, r1, r2) \
	VPMADD52LUQ a0, b, r0; \
	VPMADD52LUQ a1, b, r1; \
	VPMADD52LUQ a2, b2, r2

#define ADDHIGH(a0, a1, a2, b, b2, r0, r1, r2) \
	VPMADD52HUQ a0, b, r0; \
	VPMADD52HUQ a1, b, r1; \
	VPMADD52HUQ a2, b2, r2

#define SHIFT(r0, r1, r2, y2) \
	VALIGNQ $1, r0, r1, r0; \
	VALIGNQ $1, r1, r2, r1; \
	VALIGNQ $1, y2, Y22, y2

#define ADD(s0, s1, s2, r0, r1, r2) \
	VPADDQ s0, r0, r0; \
	VPADDQ s1, r1, r1; \
	VPADDQ s2, r2, r2

#define CLEAR(r0, r1, r2) \
	VPXORQ r0, r0, r0; \
	VPXORQ r1, r1, r1; \
	VPXORQ r2, r2, r2

// CARRY makes digits of what is in the lanes, which is less than 2^63: what is too much goes one lane up, and then once more, where it can be one at
// most. That may make the next digit too large in turn, and so on: as carries run in an addition, so that one of the masks finds where they end. A lane's
// bit is in AX where it is too large, in CX where it would be with one more. Z23 is 2^52-1, Z24 to Z26 scratch; AX ends as the mask of who gets one.
#define CARRY(r0, r1, r2) \
	VPSRLQ  $52, r0, Z24;        \
	VPSRLQ  $52, r1, Z25;        \
	VPSRLQ  $52, r2, Z26;        \
	VPANDQ  Z23, r0, r0;         \
	VPANDQ  Z23, r1, r1;         \
	VPANDQ  Z23, r2, r2;         \
	VALIGNQ $7, Z25, Z26, Z26;   \
	VALIGNQ $7, Z24, Z25, Z25;   \
	VALIGNQ $7, Z22, Z24, Z24;   \
	VPADDQ  Z24, r0, r0;         \
	VPADDQ  Z25, r1, r1;         \
	VPADDQ  Z26, r2, r2;         \
	VPCMPUQ $6, Z23, r0, K1;     \
	VPCMPUQ $6, Z23, r1, K2;     \
	VPCMPUQ $6, Z23, r2, K3;     \
	VPCMPUQ $0, Z23, r0, K4;     \
	VPCMPUQ $0, Z23, r1, K5;     \
	VPCMPUQ $0, Z23, r2, K6;     \
	KMOVW   K1, AX;              \
	KMOVW   K2, DX;              \
	KMOVW   K3, R10;             \
	SHLQ    $8, DX;              \
	SHLQ    $16, R10;            \
	ORQ     DX, AX;              \
	ORQ     R10, AX;             \
	KMOVW   K4, CX;              \
	KMOVW   K5, DX;              \
	KMOVW   K6, R10;             \
	SHLQ    $8, DX;              \
	SHLQ    $16, R10;            \
	ORQ     DX, CX;              \
	ORQ     R10, CX;             \
	LEAQ    (CX)(AX*2), AX;      \
	XORQ    CX, AX;              \
	KMOVW   AX, K1;              \
	SHRQ    $8, AX;              \
	KMOVW   AX, K2;              \
	SHRQ    $8, AX;              \
	KMOVW   AX, K3;              \
	VPSUBQ  Z23, r0, K1, r0;     \
	VPSUBQ  Z23, r1, K2, r1;     \
	VPSUBQ  Z23, r2, K3, r2;     \
	VPANDQ  Z23, r0, r0;         \
	VPANDQ  Z23, r1, r1;         \
	VPANDQ  Z23, r2, r2

// REDUCE ends a round: it adds the products of the moduli and the quotient's digits and goes one digit on.
#define REDUCE \
	ADDLOW(Z6, Z7, Y8, Z20, Y20, Z12, Z13, Y14);    \
	ADDLOW(Z9, Z10, Y11, Z21, Y21, Z15, Z16, Y17);  \
	ADDHIGH(Z6, Z7, Y8, Z20, Y20, Z24, Z25, Y26);   \
	ADDHIGH(Z9, Z10, Y11, Z21, Y21, Z27, Z28, Y29); \
	SHIFT(Z12, Z13, Z14, Y14);                      \
	SHIFT(Z15, Z16, Z17, Y17);                      \
	ADD(Z24, Z25, Y26, Z12, Z13, Y14);              \
	ADD(Z27, Z28, Y29, Z15, Z16, Y17)

// FINISH makes digits of the sums, the lowest ones included.
#define FINISH \
	MOVQ         $1, AX;      \
	KMOVW        AX, K1;      \
	VPBROADCASTQ R8, K1, Z12; \
	VPBROADCASTQ R9, K1, Z15; \
	CARRY(Z12, Z13, Z14);     \
	CARRY(Z15, Z16, Z17)

#define LOAD(from, r0, r1, r2, r3, r4, r5) \
	VMOVDQU64 (from), r0;    \
	VMOVDQU64 64(from), r1;  \
	VMOVDQU64 128(from), r2; \
	VMOVDQU64 192(from), r3; \
	VMOVDQU64 256(from), r4; \
	VMOVDQU64 320(from), r5

#define STORE(to) \
	VMOVDQU64 Z12, (to);    \
	VMOVDQU64 Z13, 64(to);  \
	VMOVDQU64 Z14, 128(to); \
	VMOVDQU64 Z15, 192(to); \
	VMOVDQU64 Z16, 256(to); \
	VMOVDQU64 Z17, 320(to)

// NEXT has a digit of b, for each prime.
#define NEXT(offset) \
	VPBROADCASTQ offset(BX), Z18; \
	VPBROADCASTQ (offset+192)(BX), Z19

// A round begins with the upper halves of the products of a and its digit (HIGH), and the lower ones of those of the next digit (LOW): of all of a.
#define HIGH_ALL \
	CLEAR(Z24, Z25, Z26); \
	CLEAR(Z27, Z28, Z29); \
	ADDHIGH(Z0, Z1, Y2, Z18, Y18, Z24, Z25, Y26); \
	ADDHIGH(Z3, Z4, Y5, Z19, Y19, Z27, Z28, Y29)

#define LOW_ALL \
	ADDLOW(Z0, Z1, Y2, Z18, Y18, Z24, Z25, Y26); \
	ADDLOW(Z3, Z4, Y5, Z19, Y19, Z27, Z28, Y29)

// ROUND is the rest of it, where the lowest digit of a takes part (ROUND_LOWEST) and where not.
#define ROUND_LOWEST \
	LOWEST(0, R8);               \
	LOW(0, 384, X12, Z20, R8);   \
	LOWEST(192, R9);             \
	LOW(192, 392, X15, Z21, R9); \
	REDUCE;                      \
	ADDQ $8, BX

#define ROUND \
	XORQ R12, R12;               \
	LOW(0, 384, X12, Z20, R8);   \
	XORQ R12, R12;               \
	LOW(192, 392, X15, Z21, R9); \
	REDUCE;                      \
	ADDQ $8, BX

// func multiplyIFMA(dst, a, b, m *uint64)
TEXT ·multiplyIFMA(SB), NOSPLIT, $0-32
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ m+24(FP), DI

	LOAD(SI, Z0, Z1, Z2, Z3, Z4, Z5)
	LOAD(DI, Z6, Z7, Z8, Z9, Z10, Z11)
	CLEAR(Z12, Z13, Z14)
	CLEAR(Z15, Z16, Z17)
	VPXORQ       Z22, Z22, Z22
	MOVQ         $0xfffffffffffff, R13
	VPBROADCASTQ R13, Z23
	XORQ         R8, R8
	XORQ         R9, R9
	MOVQ         $20, R14
	NEXT(0)
	ADDLOW(Z0, Z1, Y2, Z18, Y18, Z12, Z13, Y14)
	ADDLOW(Z3, Z4, Y5, Z19, Y19, Z15, Z16, Y17)

digit:
	HIGH_ALL
	NEXT(8) // after the last digit a nought
	LOW_ALL
	ROUND_LOWEST
	DECQ R14
	JNZ  digit

	FINISH
	MOVQ dst+0(FP), R10
	STORE(R10)
	VZEROUPPER
	RET

// DOUBLE has twice the number in a0 and a1 in d0 and d1, with nothing from below: a digit gets the highest bit of the one before. DOUBLE4 is for four digits.
#define DOUBLE(a0, a1, d0, d1) \
	VPSRLQ  $51, a0, Z24;      \
	VPSRLQ  $51, a1, Z25;      \
	VALIGNQ $7, Z24, Z25, Z25; \
	VALIGNQ $7, Z22, Z24, Z24; \
	VPADDQ  a0, a0, d0;        \
	VPADDQ  a1, a1, d1;        \
	VPANDQ  Z23, d0, d0;       \
	VPANDQ  Z23, d1, d1;       \
	VPORQ   Z24, d0, d0;       \
	VPORQ   Z25, d1, d1

#define DOUBLE4(a, d) \
	VPSRLQ  $51, a, Y24;       \
	VALIGNQ $3, Y22, Y24, Y24; \
	VPADDQ  a, a, d;           \
	VPANDQ  Y23, d, d;         \
	VPORQ   Y24, d, d

// For a square also of its upper registers only, and of the last one.
#define HIGH_UPPER \
	CLEAR(Z24, Z25, Z26); \
	CLEAR(Z27, Z28, Z29); \
	VPMADD52HUQ Z1, Z18, Z25; \
	VPMADD52HUQ Y30, Y18, Y26; \
	VPMADD52HUQ Z4, Z19, Z28; \
	VPMADD52HUQ Y31, Y19, Y29

#define LOW_UPPER \
	VPMADD52LUQ Z1, Z18, Z25; \
	VPMADD52LUQ Y30, Y18, Y26; \
	VPMADD52LUQ Z4, Z19, Z28; \
	VPMADD52LUQ Y31, Y19, Y29

#define HIGH_LAST \
	CLEAR(Z24, Z25, Z26); \
	CLEAR(Z27, Z28, Z29); \
	VPMADD52HUQ Y2, Y18, Y26; \
	VPMADD52HUQ Y5, Y19, Y29

#define LOW_LAST \
	VPMADD52LUQ Y2, Y18, Y26; \
	VPMADD52LUQ Y5, Y19, Y29

// func squareIFMA(x, m *uint64, times uint64)
//
// As multiplyIFMA with x for a and b, but of two products that are the same, those of digits in different registers, it takes one with twice the higher
// digit: in the rounds of the first eight digits Z1 and Z2 (Z4 and Z5) are doubled, in those of the next eight Z0 (Z3) takes no part, and what was Z2 (Z5) is
// doubled in Z30 (Z31), in those of the last four only that takes part, not doubled. What is doubled is digits again, for VPMADD52 looks at no more.
TEXT ·squareIFMA(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), SI
	MOVQ m+8(FP), DI

	LOAD(SI, Z12, Z13, Z14, Z15, Z16, Z17)
	LOAD(DI, Z6, Z7, Z8, Z9, Z10, Z11)
	VPXORQ       Z22, Z22, Z22
	MOVQ         $0xfffffffffffff, R13
	VPBROADCASTQ R13, Z23

again:
	MOVQ      SI, BX
	NEXT(0)
	VMOVDQA64 Z12, Z0
	VMOVDQA64 Z15, Z3
	DOUBLE(Z13, Z14, Z1, Z2)
	DOUBLE(Z16, Z17, Z4, Z5)
	DOUBLE4(Y14, Y30)
	DOUBLE4(Y17, Y31)
	CLEAR(Z12, Z13, Z14)
	CLEAR(Z15, Z16, Z17)
	ADDLOW(Z0, Z1, Y2, Z18, Y18, Z12, Z13, Y14)
	ADDLOW(Z3, Z4, Y5, Z19, Y19, Z15, Z16, Y17)
	XORQ      R8, R8
	XORQ      R9, R9
	MOVQ      $7, R14

first:
	HIGH_ALL
	NEXT(8)
	LOW_ALL
	ROUND_LOWEST
	DECQ R14
	JNZ  first

	// The eighth round begins the ninth's sum.
	HIGH_ALL
	NEXT(8)
	VMOVDQU64   64(SI), Z1
	VMOVDQU64   256(SI), Z4
	LOW_UPPER
	ROUND_LOWEST
	MOVQ        $7, R14

second:
	HIGH_UPPER
	NEXT(8)
	LOW_UPPER
	ROUND
	DECQ        R14
	JNZ         second

	// The sixteenth begins the seventeenth's.
	HIGH_UPPER
	NEXT(8)
	VMOVDQU64   128(SI), Y2
	VMOVDQU64   320(SI), Y5
	LOW_LAST
	ROUND
	MOVQ        $4, R14

third:
	HIGH_LAST
	NEXT(8)
	LOW_LAST
	ROUND
	DECQ        R14
	JNZ         third

	FINISH
	STORE(SI)
	DECQ times+16(FP)
	JNZ  again
	VZEROUPPER
	RET

// func chooseIFMA(dst, table *uint64, first, second uint64)
//
// Every entry is read, whichever is wanted: AX counts them, Z1 and Z2 are all ones where it is the one.
TEXT ·chooseIFMA(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ table+8(FP), SI
	MOVQ first+16(FP), BX
	MOVQ second+24(FP), CX

	VPBROADCASTQ BX, Z1
	VPBROADCASTQ CX, Z2
	VPXORQ       Z8, Z8, Z8
	VPXORQ       Z9, Z9, Z9
	VPXORQ       Z10, Z10, Z10
	VPXORQ       Z11, Z11, Z11
	VPXORQ       Z12, Z12, Z12
	VPXORQ       Z13, Z13, Z13
	XORQ         AX, AX

entry:
	VPBROADCASTQ AX, Z0
	VPCMPEQQ     Z0, Z1, K1
	VPCMPEQQ     Z0, Z2, K2
	VMOVDQU64    (SI), Z3
	VMOVDQU64    64(SI), Z4
	VMOVDQU64    128(SI), Z5
	VPORQ        Z3, Z8, K1, Z8
	VPORQ        Z4, Z9, K1, Z9
	VPORQ        Z5, Z10, K1, Z10
	VMOVDQU64    192(SI), Z3
	VMOVDQU64    256(SI), Z4
	VMOVDQU64    320(SI), Z5
	VPORQ        Z3, Z11, K2, Z11
	VPORQ        Z4, Z12, K2, Z12
	VPORQ        Z5, Z13, K2, Z13
	ADDQ         $384, SI
	INCQ         AX
	CMPQ         AX, $32
	JNE          entry

	VMOVDQU64 Z8, (DI)
	VMOVDQU64 Z9, 64(DI)
	VMOVDQU64 Z10, 128(DI)
	VMOVDQU64 Z11, 192(DI)
	VMOVDQU64 Z12, 256(DI)
	VMOVDQU64 Z13, 320(DI)
	VZEROUPPER
	RET
