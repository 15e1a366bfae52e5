//go:build !purego

#include "textflag.h"

// A number is twenty digits of 52 bits. Digit d is in quadword 4·(d mod 5) + d/5, so that five registers of 256 bits hold a number, and to move all
// digits down by one is to call each register by the name of the one before it: only what was in the first one has to move within its register.
// Two numbers beside each other, one for each prime, are a pair: 384 bytes, the second one begins at 192.
//
// Products of digits come from floating point, which has room for 53 bits. With rounding towards zero
//
//	2^104 + a·b           has the upper 52 bits of a·b as its fraction: it is 2^104 + upper·2^52
//	2^104 + 2^52 - that   is exact, and a·b added to it gives 2^52 + lower
//
// so that the bits of both, added as integers, add up the halves, and with them what stands for 2^104 and 2^52, which is known beforehand.
// Nothing here is ever denormal, infinite or not a number.
//
// In multiplyFMA, for the first prime | the second one:
//
//	SI, SI+192       a                  R10 | R11  what the lowest digit carries, and R14
//	BX, BX+192       b, digit by digit  AX, DX, R12  scratch
//	DI, DI+192       moduli; as doubles at DI+384, DI+576; -1/modulus at DI+768, DI+776
//	R8, R8+160       a as doubles       R9, R9+160  b as doubles, digit by digit
//	R13 2^52-1                          R14  what stands for constants in the first register
//	Y0-Y4 | Y5-Y9    the sum            Y10 b's digit, Y11 the quotient's, Y12 a half product
//	Y13 nought       Y14 2^104          Y15 2^104 + 2^52

DATA high<>+0(SB)/8, $0x4670000000000000 // 2^104
GLOBL high<>(SB), RODATA|NOPTR, $8
DATA both<>+0(SB)/8, $0x4670000000000001 // 2^104 + 2^52
GLOBL both<>(SB), RODATA|NOPTR, $8

DATA low<>+0(SB)/8, $0x4330000000000000 // 2^52
DATA low<>+8(SB)/8, $0x4330000000000000
DATA low<>+16(SB)/8, $0x4330000000000000
DATA low<>+24(SB)/8, $0x4330000000000000
GLOBL low<>(SB), RODATA|NOPTR, $32

// What stands for the constants goes into a register when it begins as the fifth, so that it is nought when the register has been the first:
// ten lower halves and ten upper ones, minus 10·(0x433 + 0x467) as the exponent's bits.
DATA bias<>+0(SB)/8, $0x9fc0000000000000
DATA bias<>+8(SB)/8, $0x9fc0000000000000
DATA bias<>+16(SB)/8, $0x9fc0000000000000
DATA bias<>+24(SB)/8, $0x9fc0000000000000
GLOBL bias<>(SB), RODATA|NOPTR, $32

// The same in the middle: before a round, two lower halves for each register up to the v-th and two upper ones but for the first are to come:
// minus 2·((v+1)·0x433 + v·0x467).
DATA begin<>+0(SB)/8, $0x79a0000000000000
DATA begin<>+8(SB)/8, $0x6660000000000000
DATA begin<>+16(SB)/8, $0x5320000000000000
DATA begin<>+24(SB)/8, $0x3fe0000000000000
DATA begin<>+32(SB)/8, $0x2ca0000000000000
GLOBL begin<>(SB), RODATA|NOPTR, $40

// LOWEST finds the quotient's digit, as doubles in Y11, with which the lowest digit becomes nought, and what this carries. first is what the first
// register has of the lowest digit. The two numbers take turns, so that one is multiplied while the other one's quotient is looked for.
#define LOWEST(number, at, k, carry, first) \
	VMOVQ        first, R12;          \
	ADDQ         carry, R12;          \
	MOVQ         number+at(BX), DX;   \
	IMULQ        number(SI), DX;      \
	ANDQ         R13, DX;             \
	ADDQ         DX, R12;             \
	MOVQ         k(DI), AX;           \
	IMULQ        R12, AX;             \
	ANDQ         R13, AX;             \
	VMOVQ        AX, X11;             \
	IMULQ        number(DI), AX;      \
	ANDQ         R13, AX;             \
	ADDQ         AX, R12;             \
	SHRQ         $52, R12;            \
	LEAQ         (R12)(R14*1), carry; \
	VPBROADCASTQ X11, Y11;            \
	VPADDQ       low<>(SB), Y11, Y11; \
	VSUBPD       low<>(SB), Y11, Y11

// PRODUCT adds the halves of digit times what is at from.
#define PRODUCT(from, digit, lower, upper) \
	VMOVAPD     digit, Y12;        \
	VFMADD132PD from, Y14, Y12;    \
	VPADDQ      Y12, upper, upper; \
	VSUBPD      Y12, Y15, Y12;     \
	VFMADD231PD from, digit, Y12;  \
	VPADDQ      Y12, lower, lower

// ROUND adds b's digit times a, and the quotient's times the modulus, to a number, and moves its digits down by one: r1 is the first one then,
// r0 the last.
#define ROUND(n, at, r0, r1, r2, r3, r4) \
	VBROADCASTSD n*160+at(R9), Y10;         \
	PRODUCT(n*160(R8), Y10, r0, r1);        \
	PRODUCT(n*160+32(R8), Y10, r1, r2);     \
	PRODUCT(n*160+64(R8), Y10, r2, r3);     \
	PRODUCT(n*160+96(R8), Y10, r3, r4);     \
	PRODUCT(n*192+384(DI), Y11, r0, r1);    \
	PRODUCT(n*192+416(DI), Y11, r1, r2);    \
	PRODUCT(n*192+448(DI), Y11, r2, r3);    \
	PRODUCT(n*192+480(DI), Y11, r3, r4);    \
	VPERMQ       $0x39, r0, r0;             \
	VPBLENDD     $0xc0, Y13, r0, r0;        \
	VPADDQ       bias<>(SB), r0, r0;        \
	PRODUCT(n*160+128(R8), Y10, r4, r0);    \
	PRODUCT(n*192+512(DI), Y11, r4, r0)

// DIGIT is a round of both.
#define DIGIT(at, r0, r1, r2, r3, r4, x0, s0, s1, s2, s3, s4, y0) \
	LOWEST(0, at, 768, R10, x0);      \
	ROUND(0, at, r0, r1, r2, r3, r4); \
	LOWEST(192, at, 776, R11, y0);    \
	ROUND(1, at, s0, s1, s2, s3, s4)

// CARRY takes what is more than a digit from one register to the next; Y11 is 2^52-1.
#define CARRY(from, to) \
	VPSRLQ $52, from, Y10;  \
	VPAND  Y11, from, from; \
	VPADDQ Y10, to, to

// WHOLE takes the constants out of a register, the v-th one.
#define WHOLE(v, r) \
	VPBROADCASTQ begin<>+8*v(SB), Y12; \
	VPSUBQ       Y12, r, r

// FINISH adds what the lowest digit carries, makes digits of sums and stores them at dst. A digit may be 2^52 then, never more, which multiplyFMA
// takes: the product of two such digits has 2^105 for 2^104 plus itself, whose bits are as much larger as they have to be.
#define FINISH(dst, carry, r0, r1, r2, r3, r4) \
	WHOLE(0, r0);                  \
	WHOLE(1, r1);                  \
	WHOLE(2, r2);                  \
	WHOLE(3, r3);                  \
	WHOLE(4, r4);                  \
	SUBQ     R14, carry;           \
	VMOVQ    carry, X12;            \
	VPADDQ   Y12, r0, r0;          \
	CARRY(r0, r1);                 \
	CARRY(r1, r2);                 \
	CARRY(r2, r3);                 \
	CARRY(r3, r4);                 \
	VPSRLQ   $52, r4, Y12;         \
	VPAND    Y11, r4, r4;          \
	VPERMQ   $0x90, Y12, Y12;      \
	VPBLENDD $0x03, Y13, Y12, Y12; \
	VPADDQ   Y12, r0, r0;          \
	CARRY(r0, r1);                 \
	VMOVDQU  r0, dst(DI);          \
	VMOVDQU  r1, dst+32(DI);       \
	VMOVDQU  r2, dst+64(DI);       \
	VMOVDQU  r3, dst+96(DI);       \
	VMOVDQU  r4, dst+128(DI)

// DOUBLES converts a number; Y13 is 2^52.
#define DOUBLE(from, to) \
	VPADDQ  from, Y13, Y12; \
	VSUBPD  Y13, Y12, Y12;  \
	VMOVAPD Y12, to

#define DOUBLES(reg, from, base, to) \
	DOUBLE(from(reg), to(base));         \
	DOUBLE(from+32(reg), to+32(base));   \
	DOUBLE(from+64(reg), to+64(base));   \
	DOUBLE(from+96(reg), to+96(base));   \
	DOUBLE(from+128(reg), to+128(base))

// func multiplyFMA(dst, a, b *pair, m *moduli)
TEXT ·multiplyFMA(SB), 0, $688-32
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ m+24(FP), DI
	LEAQ 39(SP), R8
	ANDQ $~31, R8
	LEAQ 320(R8), R9

	// Rounding towards zero, until the end.
	STMXCSR (SP)
	MOVL    $0x7f80, 4(SP) // no exceptions, whatever others have asked for
	LDMXCSR 4(SP)

	VMOVDQU low<>(SB), Y13
	DOUBLES(SI, 0, R8, 0)
	DOUBLES(SI, 192, R8, 160)
	DOUBLES(BX, 0, R9, 0)
	DOUBLES(BX, 192, R9, 160)

	VPBROADCASTQ begin<>+0(SB), Y0
	VPBROADCASTQ begin<>+8(SB), Y1
	VPBROADCASTQ begin<>+16(SB), Y2
	VPBROADCASTQ begin<>+24(SB), Y3
	VPBROADCASTQ begin<>+32(SB), Y4
	VMOVDQA      Y0, Y5
	VMOVDQA      Y1, Y6
	VMOVDQA      Y2, Y7
	VMOVDQA      Y3, Y8
	VMOVDQA      Y4, Y9
	VBROADCASTSD high<>(SB), Y14
	VBROADCASTSD both<>(SB), Y15
	VPXOR        Y13, Y13, Y13
	XORQ         R14, R14
	SUBQ         begin<>+0(SB), R14
	MOVQ         R14, R10
	MOVQ         R14, R11
	MOVQ         $0xfffffffffffff, R13

five:
	DIGIT(0, Y0, Y1, Y2, Y3, Y4, X0, Y5, Y6, Y7, Y8, Y9, X5)
	DIGIT(32, Y1, Y2, Y3, Y4, Y0, X1, Y6, Y7, Y8, Y9, Y5, X6)
	DIGIT(64, Y2, Y3, Y4, Y0, Y1, X2, Y7, Y8, Y9, Y5, Y6, X7)
	DIGIT(96, Y3, Y4, Y0, Y1, Y2, X3, Y8, Y9, Y5, Y6, Y7, X8)
	DIGIT(128, Y4, Y0, Y1, Y2, Y3, X4, Y9, Y5, Y6, Y7, Y8, X9)
	ADDQ  $8, BX
	ADDQ  $8, R9
	TESTQ $31, R9
	JNZ   five

	MOVQ         dst+0(FP), DI
	VMOVQ        R13, X11
	VPBROADCASTQ X11, Y11
	FINISH(0, R10, Y0, Y1, Y2, Y3, Y4)
	FINISH(192, R11, Y5, Y6, Y7, Y8, Y9)
	LDMXCSR (SP)
	VZEROUPPER
	RET

// TAKE is an entry's quadwords where mask has ones.
#define TAKE(at, mask, to) \
	VPAND at(SI), mask, Y10; \
	VPOR  Y10, to, to

// func chooseFMA(dst *pair, table *[32]pair, first, second uint64)
//
// Every entry is read, whichever is wanted: X11 counts them, Y12 and Y13 are all ones where it is the one.
TEXT ·chooseFMA(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ table+8(FP), SI

	VPBROADCASTQ first+16(FP), Y14
	VPBROADCASTQ second+24(FP), Y15
	VPXOR        Y0, Y0, Y0
	VPXOR        Y1, Y1, Y1
	VPXOR        Y2, Y2, Y2
	VPXOR        Y3, Y3, Y3
	VPXOR        Y4, Y4, Y4
	VPXOR        Y5, Y5, Y5
	VPXOR        Y6, Y6, Y6
	VPXOR        Y7, Y7, Y7
	VPXOR        Y8, Y8, Y8
	VPXOR        Y9, Y9, Y9
	XORQ         AX, AX

entry:
	VMOVQ        AX, X11
	VPBROADCASTQ X11, Y11
	VPCMPEQQ     Y11, Y14, Y12
	VPCMPEQQ     Y11, Y15, Y13
	TAKE(0, Y12, Y0)
	TAKE(32, Y12, Y1)
	TAKE(64, Y12, Y2)
	TAKE(96, Y12, Y3)
	TAKE(128, Y12, Y4)
	TAKE(192, Y13, Y5)
	TAKE(224, Y13, Y6)
	TAKE(256, Y13, Y7)
	TAKE(288, Y13, Y8)
	TAKE(320, Y13, Y9)
	ADDQ         $384, SI
	INCQ         AX
	CMPQ         AX, $32
	JNE          entry

	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	VMOVDQU Y4, 128(DI)
	VMOVDQU Y5, 192(DI)
	VMOVDQU Y6, 224(DI)
	VMOVDQU Y7, 256(DI)
	VMOVDQU Y8, 288(DI)
	VMOVDQU Y9, 320(DI)
	VZEROUPPER
	RET
