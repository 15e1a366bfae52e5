//go:build !purego

#include "textflag.h"

// A number is twenty digits of 52 bits, low ones first, in 24 quadwords: three registers of 512 bits, of which the last half is nought.
// Two numbers beside each other, one for each prime, are a pair: 384 bytes.
//
// In multiplyIFMA, for the first prime | the second one:
//
//	SI, SI+192       a                   R8 | R9    what has become of digits below those in the registers: the carry into lane 0
//	BX, BX+192       b, digit by digit   R10 | R11  -1/modulus
//	DI, DI+192       moduli, -1/modulus  AX, CX, DX, R12  scratch; DX is the factor of MULXQ
//	R13 2^52-1; R14 the count; R15 is the runtime's where code is linked dynamically
//	Z0-Z2 | Z3-Z5    a                   Z12-Z14 | Z15-Z17  the sum
//	Z6-Z8 | Z9-Z11   moduli              Z18 | Z19 b's digit, Z20 | Z21 the quotient's, Z22 nought

// LOW finds the quotient's digit, in CX, with which the sum's lowest one becomes nought, and what that carries. The lowest digit is reckoned here and
// not in the vectors, for all that follows in a round depends on it.
#define LOW(offset, acc, k) \
	MULXQ offset(SI), AX, R12; \
	ADDQ  AX, acc;             \
	ADCQ  $0, R12;             \
	MOVQ  k, CX;               \
	IMULQ acc, CX;             \
	ANDQ  R13, CX;             \
	MOVQ  CX, DX;              \
	MULXQ offset(DI), AX, DX;  \
	ADDQ  AX, acc;             \
	ADCQ  DX, R12;             \
	SHRQ  $52, R12, acc

// ADDLOW and ADDHIGH add the halves of the products, SHIFT moves all digits down by one. The last four digits are half a register: where a
// whole one takes two turns (Zen 4) that is a sixth of the work.
#define ADDLOW(a0, a1, a2, m0, m1, m2, b, y, b2, y2, r0, r1, r2) \
	VPMADD52LUQ a0, b, r0; \
	VPMADD52LUQ a1, b, r1; \
	VPMADD52LUQ a2, b2, r2; \
	VPMADD52LUQ m0, y, r0; \
	VPMADD52LUQ m1, y, r1; \
	VPMADD52LUQ m2, y2, r2

#define SHIFT(r0, r1, r2, y2, x0, acc) \
	VALIGNQ $1, r0, r1, r0;  \
	VALIGNQ $1, r1, r2, r1;  \
	VALIGNQ $1, y2, Y22, y2; \
	VMOVQ   x0, AX;          \
	ADDQ    AX, acc

#define ADDHIGH(a0, a1, a2, m0, m1, m2, b, y, b2, y2, r0, r1, r2) \
	VPMADD52HUQ a0, b, r0; \
	VPMADD52HUQ a1, b, r1; \
	VPMADD52HUQ a2, b2, r2; \
	VPMADD52HUQ m0, y, r0; \
	VPMADD52HUQ m1, y, r1; \
	VPMADD52HUQ m2, y2, r2

// CARRY makes a digit of what is in a lane and adds what is too much to the next one.
#define CARRY(offset, acc) \
	ADDQ offset(R10), acc;  \
	MOVQ acc, AX;           \
	ANDQ R13, AX;           \
	MOVQ AX, offset(R10);   \
	SHRQ $52, acc

#define CARRY4(offset, acc) \
	CARRY(offset, acc); CARRY(offset+8, acc); CARRY(offset+16, acc); CARRY(offset+24, acc)

// func multiplyIFMA(dst, a, b, m *uint64)
TEXT ·multiplyIFMA(SB), NOSPLIT, $0-32
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ m+24(FP), DI
	MOVQ 384(DI), R10
	MOVQ 392(DI), R11

	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVDQU64 256(SI), Z4
	VMOVDQU64 320(SI), Z5
	VMOVDQU64 (DI), Z6
	VMOVDQU64 64(DI), Z7
	VMOVDQU64 128(DI), Z8
	VMOVDQU64 192(DI), Z9
	VMOVDQU64 256(DI), Z10
	VMOVDQU64 320(DI), Z11
	VPXORQ    Z12, Z12, Z12
	VPXORQ    Z13, Z13, Z13
	VPXORQ    Z14, Z14, Z14
	VPXORQ    Z15, Z15, Z15
	VPXORQ    Z16, Z16, Z16
	VPXORQ    Z17, Z17, Z17
	VPXORQ    Z22, Z22, Z22
	XORQ      R8, R8
	XORQ      R9, R9
	MOVQ      $0xfffffffffffff, R13
	MOVQ      $20, R14

digit:
	MOVQ         (BX), DX
	VPBROADCASTQ DX, Z18
	LOW(0, R8, R10)
	VPBROADCASTQ CX, Z20
	MOVQ         192(BX), DX
	VPBROADCASTQ DX, Z19
	LOW(192, R9, R11)
	VPBROADCASTQ CX, Z21

	ADDLOW(Z0, Z1, Y2, Z6, Z7, Y8, Z18, Z20, Y18, Y20, Z12, Z13, Y14)
	ADDLOW(Z3, Z4, Y5, Z9, Z10, Y11, Z19, Z21, Y19, Y21, Z15, Z16, Y17)
	SHIFT(Z12, Z13, Z14, Y14, X12, R8)
	SHIFT(Z15, Z16, Z17, Y17, X15, R9)
	ADDHIGH(Z0, Z1, Y2, Z6, Z7, Y8, Z18, Z20, Y18, Y20, Z12, Z13, Y14)
	ADDHIGH(Z3, Z4, Y5, Z9, Z10, Y11, Z19, Z21, Y19, Y21, Z15, Z16, Y17)

	ADDQ $8, BX
	DECQ R14
	JNZ  digit

	// Lane 0 is in R8 and R9; the registers' own is of no use.
	MOVQ      dst+0(FP), R10
	VMOVDQU64 Z12, (R10)
	VMOVDQU64 Z13, 64(R10)
	VMOVDQU64 Z14, 128(R10)
	VMOVDQU64 Z15, 192(R10)
	VMOVDQU64 Z16, 256(R10)
	VMOVDQU64 Z17, 320(R10)
	XORQ      AX, AX
	MOVQ      AX, (R10)
	MOVQ      AX, 192(R10)
	CARRY4(0, R8)
	CARRY4(192, R9)
	CARRY4(32, R8)
	CARRY4(224, R9)
	CARRY4(64, R8)
	CARRY4(256, R9)
	CARRY4(96, R8)
	CARRY4(288, R9)
	CARRY4(128, R8)
	CARRY4(320, R9)
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
