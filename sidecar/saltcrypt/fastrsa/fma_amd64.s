//go:build !purego

#include "textflag.h"

// A number is 4·V digits of 52 bits, V being 5, 8 or 10. Digit d is in quadword 4·(d mod V) + d/V, so that V registers of 256 bits hold a number, and to
// move all digits down by one is to call each register by the name of the one before it: only what was in the first one has to move within its
// register. With V = 5 two numbers are multiplied at once, one for each prime, of which the second one lies behind the first.
//
// Digits have a sign: they are from -2^51 to 2^51, so that there is room for twice a product. The lowest one is less than 2^51.
//
// Products of digits come from floating point, which has room for 53 bits. With rounding towards zero, which is downwards as the sums are positive,
//
//	3·2^103 + a·b              is 3·2^103 + upper·2^52, upper being a·b/2^52 rounded down
//	3·2^103 + 2^52 - that      is exact, and a·b added to it gives 2^52 + lower, lower being from 0 to 2^52-1
//
// so that the bits of both, added as integers, add up the halves, and with them what stands for 3·2^103 and 2^52, which is known beforehand (type bias).
//
// No bit is lost. a·b is from -2^103 to 2^103: for two digits with a sign, of which one may be doubled, and for a digit of the modulus, which has a
// sign, and one of the quotient, which is from 0 to 2^52-1. So 3·2^103 + a·b is from 2^104 to 2^105, where doubles are 2^52 apart, and is rounded to
// a multiple of that; 2^105 itself has bits that are as much larger as they have to be. The difference in the second line is a multiple of 2^52,
// of which it is less than 2^52 times, and 2^52 + lower is an integer below 2^53. Nothing here is ever denormal, infinite or not a number. A quadword of
// the sum is less than 2^60 without what stands for the constants: a half of a product is less than 2^52, and of the four kinds, lower and upper ones
// of a and of the modulus, no more than 40 are added to a quadword before it is done, which is 160·2^52.
//
// The quotient's digits are found in integer registers and a round ahead of the vectors, which would have to be waited for: what a round adds to the
// two lowest digits is multiplied there once more, and of the vectors only what the rounds before have left in the second one is asked for.
//
// In the functions, for the first number | the second one, pointers being 128 further on where they say so, which makes for shorter instructions, as do
// the registers that are used most (all the loops together have to be fast to decode):
//
//	SI, SI+160          a, and the result      BX, BX+160  b, digit by digit (+128)     CX  bias
//	R8, R8+160          a as doubles (+128)    R9, R9+160  b as doubles, digit by digit (+128)
//	DI, DI+160          modulus as doubles (+128)    16(SP) | 64(SP)  what SCALARS describes
//	R10 | R11           the sum's lowest digit and what is above it
//	R13 2^52-1          R14 2^52's bits        AX, DX, R12 scratch
//	Y6-Y10 | Y11-Y15    the sum; Y6-Y13 or Y6-Y15 of one number
//	Y0 a half product   Y1 b's digit           Y2 the quotient's
//	Y3 twice b's digit  Y4 3·2^103             Y5 3·2^103 + 2^52
//
// All that a round reads of numbers is in one frame: a load whose address has the same lowest twelve bits as that of a store before it waits for that.
//
// Nobody else has this rounding or misses what was in R14 and X15: Go does not preempt assembly (five squares of a number of 2048 bits take 2 µs, and
// the longest call of all, the thirty that a strange public exponent may have, 12), makes both registers anew for who called it, and Linux begins a signal's handler with an MXCSR of its own.

DATA high<>+0(SB)/8, $0x4678000000000000 // 3·2^103
GLOBL high<>(SB), RODATA|NOPTR, $8
DATA both<>+0(SB)/8, $0x4678000000000001 // 3·2^103 + 2^52
GLOBL both<>(SB), RODATA|NOPTR, $8
DATA signed<>+0(SB)/8, $0x4338000000000000 // 3·2^51
GLOBL signed<>(SB), RODATA|NOPTR, $8

DATA low<>+0(SB)/8, $0x4330000000000000 // 2^52
DATA low<>+8(SB)/8, $0x4330000000000000
DATA low<>+16(SB)/8, $0x4330000000000000
DATA low<>+24(SB)/8, $0x4330000000000000
GLOBL low<>(SB), RODATA|NOPTR, $32

// DOUBLE converts four digits; Y3 is 3·2^51.
#define DOUBLE(from, to) \
	VPADDQ  from, Y3, Y0; \
	VSUBPD  Y3, Y0, Y0;   \
	VMOVAPD Y0, to

#define DOUBLE10(from, to) \
	DOUBLE(0(from), -128(to));  \
	DOUBLE(32(from), -96(to));  \
	DOUBLE(64(from), -64(to));  \
	DOUBLE(96(from), -32(to));  \
	DOUBLE(128(from), 0(to));   \
	DOUBLE(160(from), 32(to));  \
	DOUBLE(192(from), 64(to));  \
	DOUBLE(224(from), 96(to));  \
	DOUBLE(256(from), 128(to)); \
	DOUBLE(288(from), 160(to))

#define COPY(from, to) \
	VMOVDQU from(DI), Y0; \
	VMOVDQA Y0, to-128(R8)

// SCALARS are what LOWEST needs of a and of a modulus: at to(SP) a's lowest digit times 2^12 and its second one, then -1/modulus modulo 2^52, the modulus's
// lowest digit times 2^12 and its second one. Behind them is room for the quotient's digit, as bits of 2^52 + digit.
#define SCALAR(from, to) \
	MOVQ from, AX; \
	MOVQ AX, to(SP)

// START rounds towards zero, until STOP, and without exceptions, whatever others have asked for. The flags of exceptions are up beforehand, as
// Intel wants them where time must not depend on numbers (MXCSR configuration dependent timing): the first to go up could take some. The frame has room
// for three times 320 bytes from 128 below R8 on: a, b and the modulus, which, with its scalars, is what m points to (shape.moduli).
#define START \
	LEAQ         175(SP), R8;           \
	ANDQ         $~63, R8;              \
	ADDQ         $128, R8;              \
	STMXCSR      (SP);                  \
	MOVL         $0x7fbf, 4(SP);        \
	LDMXCSR      4(SP);                 \
	MOVQ         $0xfffffffffffff, R13; \
	MOVQ         low<>(SB), R14;        \
	VBROADCASTSD signed<>(SB), Y3;      \
	COPY(0, 640);                       \
	COPY(32, 672);                      \
	COPY(64, 704);                      \
	COPY(96, 736);                      \
	COPY(128, 768);                     \
	COPY(160, 800);                     \
	COPY(192, 832);                     \
	COPY(224, 864);                     \
	COPY(256, 896);                     \
	COPY(288, 928);                     \
	SCALAR(320(DI), 32);                \
	SCALAR(328(DI), 40);                \
	SCALAR(336(DI), 48);                \
	SCALAR(352(DI), 80);                \
	SCALAR(360(DI), 88);                \
	SCALAR(368(DI), 96);                \
	LEAQ         640(R8), DI

#define STOP \
	LDMXCSR (SP); \
	VZEROUPPER

// FACTORS are a and b, as doubles.
#define FACTORS \
	LEAQ 320(R8), R9; \
	DOUBLE10(SI, R8); \
	DOUBLE10(BX, R9); \
	ADDQ $128, BX

#define ASCALARS(from, to) \
	SCALAR(from+32(SI), to+8); \
	MOVQ from(SI), AX;         \
	SHLQ $12, AX;              \
	MOVQ AX, to(SP)

// BEGIN has the v-th register begin with what makes it nought in time (type bias).
#define BEGIN(v, r) \
	VPBROADCASTQ 320+8*v(CX), r

// SUM is the beginning of it, of two numbers with V = 5. What that has for the second one does no harm to one of 8 or 10 registers.
#define SUM \
	ASCALARS(0, 16);             \
	ASCALARS(160, 64);           \
	VBROADCASTSD high<>(SB), Y4; \
	VBROADCASTSD both<>(SB), Y5; \
	BEGIN(0, Y6);                \
	BEGIN(1, Y7);                \
	BEGIN(2, Y8);                \
	BEGIN(3, Y9);                \
	BEGIN(4, Y10);               \
	BEGIN(5, Y11);               \
	BEGIN(6, Y12);               \
	BEGIN(7, Y13);               \
	BEGIN(8, Y14);               \
	BEGIN(9, Y15);               \
	XORL R10, R10;               \
	XORL R11, R11

// LOW is what b's digit and a's lowest one add to the lowest digit, which is in carry; R12 gets the upper half. With LOW2 it is twice as much, with
// LOW0 nothing.
#define LOW(a, carry) \
	IMULQ a;         \
	SHRQ  $12, AX;   \
	ADDQ  AX, carry; \
	MOVQ  DX, R12

#define LOW0(b, a, carry) XORL R12, R12
#define LOW1(b, a, carry) MOVQ b, AX; LOW(a, carry)
#define LOW2(b, a, carry) MOVQ b, AX; ADDQ AX, AX; LOW(a, carry)

// NEXT adds the lower half of b's digit and a's second one to R12, likewise.
#define NEXT(a) \
	IMULQ a, AX;   \
	ANDQ  R13, AX; \
	ADDQ  AX, R12

#define NEXT0(b, a)
#define NEXT1(b, a) MOVQ b, AX; NEXT(a)
#define NEXT2(b, a) MOVQ b, AX; ADDQ AX, AX; NEXT(a)

// LOWEST finds the quotient's digit with which the lowest digit becomes nought, and then the lowest digit of the next round: what this one carries,
// what the second register has of it already, and what this round is about to add to it there. The quotient's digit adds 2^52 less what is in the lowest
// digit, or nothing where that is nought, which carries as much as 2^52-1 does.
#define LOWEST(b, at, carry, second, LOWn, NEXTn) \
	LOWn(b, at(SP), carry); \
	NEXTn(b, at+8(SP));     \
	VMOVQ second, AX;       \
	ADDQ  AX, R12;          \
	MOVQ  at+16(SP), AX;    \
	IMULQ carry, AX;        \
	ANDQ  R13, AX;          \
	ADDQ  R13, carry;       \
	SARQ  $52, carry;       \
	ADDQ  R12, carry;       \
	LEAQ  (AX)(R14*1), DX;  \
	MOVQ  DX, at+40(SP);    \
	MOVQ  AX, R12;          \
	IMULQ at+24(SP);        \
	IMULQ at+32(SP), R12;   \
	ANDQ  R13, R12;         \
	ADDQ  DX, carry;        \
	ADDQ  R12, carry

// PRODUCT adds the halves of digit times what is at from.
#define PRODUCT(from, digit, lower, upper) \
	VMOVAPD     digit, Y0;        \
	VFMADD132PD from, Y4, Y0;     \
	VPADDQ      Y0, upper, upper; \
	VSUBPD      Y0, Y5, Y0;       \
	VFMADD231PD from, digit, Y0;  \
	VPADDQ      Y0, lower, lower

// A1 adds what is b's digit times a register of a, A2 twice that, A0 nothing; Q the quotient's digit times a register of the modulus.
#define A1(at, lower, upper) PRODUCT(at(R8), Y1, lower, upper)
#define A2(at, lower, upper) PRODUCT(at(R8), Y3, lower, upper)
#define A0(at, lower, upper)
#define Q(at, lower, upper) PRODUCT(at(DI), Y2, lower, upper)

#define ONCE
#define TWICE VADDPD Y1, Y1, Y3

// DIGITS loads b's digit and the quotient's.
#define DIGITS(b, quotient, DOUBLED) \
	VBROADCASTSD b, Y1;             \
	VBROADCASTSD quotient(SP), Y2;  \
	VSUBPD       low<>(SB), Y2, Y2; \
	DOUBLED

// TURN makes the last register of the first one, whose lowest digit is nought or elsewhere by now.
#define TURN(at, r) \
	VEXTRACTI128 $1, r, X0;    \
	VPALIGNR     $8, r, Y0, r; \
	VPADDQ       at(CX), r, r

// FOUR is for four registers of a or of the modulus behind each other. P0 to P9 are A0, A1 or A2, or Q.
#define FOUR(at, P0, P1, P2, P3, r0, r1, r2, r3, r4) \
	P0(at-128, r0, r1); \
	P1(at-96, r1, r2);  \
	P2(at-64, r2, r3);  \
	P3(at-32, r3, r4)

// ROUND adds b's digit times a, and the quotient's times the modulus, to a number, and moves its digits down by one: r1 is the first one then,
// r0 the last. What is for the last register comes after that, for the upper halves belong to r0 as it is then.
#define ROUND5(n, quotient, at, r0, r1, r2, r3, r4, DOUBLED, P0, P1, P2, P3, P4) \
	DIGITS(n+at-128(R9), quotient, DOUBLED);     \
	FOUR(n, P0, P1, P2, P3, r0, r1, r2, r3, r4); \
	FOUR(n, Q, Q, Q, Q, r0, r1, r2, r3, r4);     \
	TURN(at, r0);                                \
	P4(n, r4, r0);                               \
	Q(n, r4, r0)

// DIGIT is all of a round, for both numbers with V = 5.
#define DIGIT5(at, r0, r1, r2, r3, r4, x1, s0, s1, s2, s3, s4, z1, LOWn, NEXTn, DOUBLED, P0, P1, P2, P3, P4) \
	LOWEST(at-128(BX), 16, R10, x1, LOWn, NEXTn);                       \
	LOWEST(at+32(BX), 64, R11, z1, LOWn, NEXTn);                        \
	ROUND5(0, 56, at, r0, r1, r2, r3, r4, DOUBLED, P0, P1, P2, P3, P4); \
	ROUND5(160, 104, at, s0, s1, s2, s3, s4, DOUBLED, P0, P1, P2, P3, P4)

#define DIGIT8(at, r0, r1, r2, r3, r4, r5, r6, r7, x1, LOWn, NEXTn, DOUBLED, P0, P1, P2, P3, P4, P5, P6, P7) \
	LOWEST(at-128(BX), 16, R10, x1, LOWn, NEXTn); \
	DIGITS(at-128(R9), 56, DOUBLED);              \
	FOUR(0, P0, P1, P2, P3, r0, r1, r2, r3, r4);  \
	P4(0, r4, r5);                                \
	P5(32, r5, r6);                               \
	P6(64, r6, r7);                               \
	FOUR(0, Q, Q, Q, Q, r0, r1, r2, r3, r4);      \
	Q(0, r4, r5);                                 \
	Q(32, r5, r6);                                \
	Q(64, r6, r7);                                \
	TURN(at, r0);                                 \
	P7(96, r7, r0);                               \
	Q(96, r7, r0)

#define DIGIT10(at, r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, x1, LOWn, NEXTn, DOUBLED, P0, P1, P2, P3, P4, P5, P6, P7, P8, P9) \
	LOWEST(at-128(BX), 16, R10, x1, LOWn, NEXTn);  \
	DIGITS(at-128(R9), 56, DOUBLED);               \
	FOUR(0, P0, P1, P2, P3, r0, r1, r2, r3, r4);   \
	FOUR(128, P4, P5, P6, P7, r4, r5, r6, r7, r8); \
	P8(128, r8, r9);                               \
	FOUR(0, Q, Q, Q, Q, r0, r1, r2, r3, r4);       \
	FOUR(128, Q, Q, Q, Q, r4, r5, r6, r7, r8);     \
	Q(128, r8, r9);                                \
	TURN(at, r0);                                  \
	P9(160, r9, r0);                               \
	Q(160, r9, r0)

// ADVANCE goes on to the next of the four digits that a register has; the flags say whether there was one.
#define ADVANCE \
	ADDQ  $8, BX; \
	ADDQ  $8, R9; \
	TESTQ $31, R9

// END takes the constants out of the v-th register and makes it positive (type bias).
#define END(v, r) \
	VPBROADCASTQ 400+8*v(CX), Y0; \
	VPADDQ       Y0, r, r

#define END10 \
	END(0, Y6);  \
	END(1, Y7);  \
	END(2, Y8);  \
	END(3, Y9);  \
	END(4, Y10); \
	END(5, Y11); \
	END(6, Y12); \
	END(7, Y13); \
	END(8, Y14); \
	END(9, Y15)

// ENDING has what FIRST, CARRY and STORE want: AX is 2^62 + 2^51, as END has it; Y2 is 2^52-1, Y4 -2^51, Y3 3·2^51.
#define ENDING \
	MOVQ         dst+0(FP), SI;           \
	MOVQ         $0x4008000000000000, AX; \
	VMOVQ        R13, X2;                 \
	VPBROADCASTQ X2, Y2;                  \
	VPSRLQ       $1, Y2, Y4;              \
	VPSUBQ       Y2, Y4, Y4;              \
	VBROADCASTSD signed<>(SB), Y3;        \
	END10

// FIRST has the lowest digit, which is not in the registers, take its place.
#define FIRST(carry, r) \
	ADDQ     AX, carry; \
	VMOVQ    carry, X0; \
	VPBLENDD $0x03, Y0, r, r

// CARRY takes what is more than a digit from one register to the next; Y2 is 2^52-1.
#define CARRY(from, to) \
	VPSRLQ $52, from, Y1;  \
	VPAND  Y2, from, from; \
	VPADDQ Y1, to, to

// LAST is the end of all carrying: what the last register carries goes to the first one, a lane up. That is positive: a second digit gets one at most.
#define LAST(r0, r1, last) \
	VPSRLQ     $52, last, Y1;     \
	VPAND      Y2, last, last;    \
	VPERM2I128 $0x08, Y1, Y1, Y0; \
	VPALIGNR   $8, Y0, Y1, Y0;    \
	VPADDQ     Y0, r0, r0;        \
	CARRY(r0, r1)

// STORE takes 2^51 from four digits, so that they have a sign, and stores them, as doubles too.
#define STORE(r, at) \
	VPADDQ  Y4, r, r;  \
	VMOVDQU r, at(SI); \
	VPADDQ  Y3, r, r;  \
	VSUBPD  Y3, r, r;  \
	VMOVAPD r, at-128(R8)

// CARRIES is how each number begins, FINISH what is after the last round.
#define CARRIES(carry, r0, r1, r2, r3, r4) \
	FIRST(carry, r0); \
	CARRY(r0, r1);    \
	CARRY(r1, r2);    \
	CARRY(r2, r3);    \
	CARRY(r3, r4)

#define STORE8 \
	STORE(Y6, 0);    \
	STORE(Y7, 32);   \
	STORE(Y8, 64);   \
	STORE(Y9, 96);   \
	STORE(Y10, 128); \
	STORE(Y11, 160); \
	STORE(Y12, 192); \
	STORE(Y13, 224)

#define STORE10 \
	STORE8;          \
	STORE(Y14, 256); \
	STORE(Y15, 288)

#define FINISH5 \
	ENDING;                                \
	CARRIES(R10, Y6, Y7, Y8, Y9, Y10);     \
	LAST(Y6, Y7, Y10);                     \
	CARRIES(R11, Y11, Y12, Y13, Y14, Y15); \
	LAST(Y11, Y12, Y15);                   \
	STORE10

#define FINISH8 \
	ENDING;                            \
	CARRIES(R10, Y6, Y7, Y8, Y9, Y10); \
	CARRY(Y10, Y11);                   \
	CARRY(Y11, Y12);                   \
	CARRY(Y12, Y13);                   \
	LAST(Y6, Y7, Y13);                 \
	STORE8

#define FINISH10 \
	ENDING;                            \
	CARRIES(R10, Y6, Y7, Y8, Y9, Y10); \
	CARRY(Y10, Y11);                   \
	CARRY(Y11, Y12);                   \
	CARRY(Y12, Y13);                   \
	CARRY(Y13, Y14);                   \
	CARRY(Y14, Y15);                   \
	LAST(Y6, Y7, Y15);                 \
	STORE10

// func multiply5(dst, a, b, m *uint64, c *bias)
TEXT ·multiply5(SB), 0, $1136-40
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ m+24(FP), DI
	MOVQ c+32(FP), CX
	START
	FACTORS
	SUM

	PCALIGN $64

digits:
	DIGIT5(0, Y6, Y7, Y8, Y9, Y10, X7, Y11, Y12, Y13, Y14, Y15, X12, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1)
	DIGIT5(32, Y7, Y8, Y9, Y10, Y6, X8, Y12, Y13, Y14, Y15, Y11, X13, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1)
	DIGIT5(64, Y8, Y9, Y10, Y6, Y7, X9, Y13, Y14, Y15, Y11, Y12, X14, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1)
	DIGIT5(96, Y9, Y10, Y6, Y7, Y8, X10, Y14, Y15, Y11, Y12, Y13, X15, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1)
	DIGIT5(128, Y10, Y6, Y7, Y8, Y9, X6, Y15, Y11, Y12, Y13, Y14, X11, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1)
	ADVANCE
	JNZ digits

	FINISH5
	STOP
	RET

// func square5(dst, a, m *uint64, c *bias, times uint64)
//
// times is one at least. Of two products that are the same one is made, twice: a digit is multiplied once with those of its own register, and twice
// with those of the two registers after it.
TEXT ·square5(SB), 0, $1136-40
	MOVQ a+8(FP), SI
	MOVQ m+16(FP), DI
	MOVQ c+24(FP), CX
	START
	DOUBLE10(SI, R8)

again:
	LEAQ 128(SI), BX
	MOVQ R8, R9
	SUM

	PCALIGN $64

digits:
	DIGIT5(0, Y6, Y7, Y8, Y9, Y10, X7, Y11, Y12, Y13, Y14, Y15, X12, LOW1, NEXT2, TWICE, A1, A2, A2, A0, A0)
	DIGIT5(32, Y7, Y8, Y9, Y10, Y6, X8, Y12, Y13, Y14, Y15, Y11, X13, LOW0, NEXT1, TWICE, A0, A1, A2, A2, A0)
	DIGIT5(64, Y8, Y9, Y10, Y6, Y7, X9, Y13, Y14, Y15, Y11, Y12, X14, LOW0, NEXT0, TWICE, A0, A0, A1, A2, A2)
	DIGIT5(96, Y9, Y10, Y6, Y7, Y8, X10, Y14, Y15, Y11, Y12, Y13, X15, LOW2, NEXT0, TWICE, A2, A0, A0, A1, A2)
	DIGIT5(128, Y10, Y6, Y7, Y8, Y9, X6, Y15, Y11, Y12, Y13, Y14, X11, LOW2, NEXT2, TWICE, A2, A2, A0, A0, A1)
	ADVANCE
	JNZ digits

	FINISH5
	DECQ times+32(FP)
	JNZ  again
	STOP
	RET

// func multiply8(dst, a, b, m *uint64, c *bias)
TEXT ·multiply8(SB), 0, $1136-40
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ m+24(FP), DI
	MOVQ c+32(FP), CX
	START
	FACTORS
	SUM

	PCALIGN $64

digits:
	DIGIT8(0, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, X7, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT8(32, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y6, X8, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT8(64, Y8, Y9, Y10, Y11, Y12, Y13, Y6, Y7, X9, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT8(96, Y9, Y10, Y11, Y12, Y13, Y6, Y7, Y8, X10, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT8(128, Y10, Y11, Y12, Y13, Y6, Y7, Y8, Y9, X11, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT8(160, Y11, Y12, Y13, Y6, Y7, Y8, Y9, Y10, X12, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT8(192, Y12, Y13, Y6, Y7, Y8, Y9, Y10, Y11, X13, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT8(224, Y13, Y6, Y7, Y8, Y9, Y10, Y11, Y12, X6, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1)
	ADVANCE
	JNZ digits

	FINISH8
	STOP
	RET

// func square8(dst, a, m *uint64, c *bias, times uint64)
//
// Of two products that are the same one is made, twice: a digit is multiplied once with those of its own register, and twice with those of
// the three after it, or four in the first four rounds of eight.
TEXT ·square8(SB), 0, $1136-40
	MOVQ a+8(FP), SI
	MOVQ m+16(FP), DI
	MOVQ c+24(FP), CX
	START
	DOUBLE10(SI, R8)

again:
	LEAQ 128(SI), BX
	MOVQ R8, R9
	SUM

	PCALIGN $64

digits:
	DIGIT8(0, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, X7, LOW1, NEXT2, TWICE, A1, A2, A2, A2, A2, A0, A0, A0)
	DIGIT8(32, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y6, X8, LOW0, NEXT1, TWICE, A0, A1, A2, A2, A2, A2, A0, A0)
	DIGIT8(64, Y8, Y9, Y10, Y11, Y12, Y13, Y6, Y7, X9, LOW0, NEXT0, TWICE, A0, A0, A1, A2, A2, A2, A2, A0)
	DIGIT8(96, Y9, Y10, Y11, Y12, Y13, Y6, Y7, Y8, X10, LOW0, NEXT0, TWICE, A0, A0, A0, A1, A2, A2, A2, A2)
	DIGIT8(128, Y10, Y11, Y12, Y13, Y6, Y7, Y8, Y9, X11, LOW0, NEXT0, TWICE, A0, A0, A0, A0, A1, A2, A2, A2)
	DIGIT8(160, Y11, Y12, Y13, Y6, Y7, Y8, Y9, Y10, X12, LOW2, NEXT0, TWICE, A2, A0, A0, A0, A0, A1, A2, A2)
	DIGIT8(192, Y12, Y13, Y6, Y7, Y8, Y9, Y10, Y11, X13, LOW2, NEXT2, TWICE, A2, A2, A0, A0, A0, A0, A1, A2)
	DIGIT8(224, Y13, Y6, Y7, Y8, Y9, Y10, Y11, Y12, X6, LOW2, NEXT2, TWICE, A2, A2, A2, A0, A0, A0, A0, A1)
	ADVANCE
	JNZ digits

	FINISH8
	DECQ times+32(FP)
	JNZ  again
	STOP
	RET

// func multiply10(dst, a, b, m *uint64, c *bias)
TEXT ·multiply10(SB), 0, $1136-40
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ m+24(FP), DI
	MOVQ c+32(FP), CX
	START
	FACTORS
	SUM

	PCALIGN $64

digits:
	DIGIT10(0, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15, X7, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT10(32, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Y6, X8, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT10(64, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Y6, Y7, X9, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT10(96, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Y6, Y7, Y8, X10, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT10(128, Y10, Y11, Y12, Y13, Y14, Y15, Y6, Y7, Y8, Y9, X11, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT10(160, Y11, Y12, Y13, Y14, Y15, Y6, Y7, Y8, Y9, Y10, X12, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT10(192, Y12, Y13, Y14, Y15, Y6, Y7, Y8, Y9, Y10, Y11, X13, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT10(224, Y13, Y14, Y15, Y6, Y7, Y8, Y9, Y10, Y11, Y12, X14, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT10(256, Y14, Y15, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, X15, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1, A1, A1)
	DIGIT10(288, Y15, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, X6, LOW1, NEXT1, ONCE, A1, A1, A1, A1, A1, A1, A1, A1, A1, A1)
	ADVANCE
	JNZ digits

	FINISH10
	STOP
	RET

// func square10(dst, a, m *uint64, c *bias, times uint64)
//
// Of two products that are the same one is made, twice: a digit is multiplied once with those of its own register, and twice with those of
// the four after it, or five in the first five rounds of ten.
TEXT ·square10(SB), 0, $1136-40
	MOVQ a+8(FP), SI
	MOVQ m+16(FP), DI
	MOVQ c+24(FP), CX
	START
	DOUBLE10(SI, R8)

again:
	LEAQ 128(SI), BX
	MOVQ R8, R9
	SUM

	PCALIGN $64

digits:
	DIGIT10(0, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15, X7, LOW1, NEXT2, TWICE, A1, A2, A2, A2, A2, A2, A0, A0, A0, A0)
	DIGIT10(32, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Y6, X8, LOW0, NEXT1, TWICE, A0, A1, A2, A2, A2, A2, A2, A0, A0, A0)
	DIGIT10(64, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Y6, Y7, X9, LOW0, NEXT0, TWICE, A0, A0, A1, A2, A2, A2, A2, A2, A0, A0)
	DIGIT10(96, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Y6, Y7, Y8, X10, LOW0, NEXT0, TWICE, A0, A0, A0, A1, A2, A2, A2, A2, A2, A0)
	DIGIT10(128, Y10, Y11, Y12, Y13, Y14, Y15, Y6, Y7, Y8, Y9, X11, LOW0, NEXT0, TWICE, A0, A0, A0, A0, A1, A2, A2, A2, A2, A2)
	DIGIT10(160, Y11, Y12, Y13, Y14, Y15, Y6, Y7, Y8, Y9, Y10, X12, LOW0, NEXT0, TWICE, A0, A0, A0, A0, A0, A1, A2, A2, A2, A2)
	DIGIT10(192, Y12, Y13, Y14, Y15, Y6, Y7, Y8, Y9, Y10, Y11, X13, LOW2, NEXT0, TWICE, A2, A0, A0, A0, A0, A0, A1, A2, A2, A2)
	DIGIT10(224, Y13, Y14, Y15, Y6, Y7, Y8, Y9, Y10, Y11, Y12, X14, LOW2, NEXT2, TWICE, A2, A2, A0, A0, A0, A0, A0, A1, A2, A2)
	DIGIT10(256, Y14, Y15, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, X15, LOW2, NEXT2, TWICE, A2, A2, A2, A0, A0, A0, A0, A0, A1, A2)
	DIGIT10(288, Y15, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, X6, LOW2, NEXT2, TWICE, A2, A2, A2, A2, A0, A0, A0, A0, A0, A1)
	ADVANCE
	JNZ digits

	FINISH10
	DECQ times+32(FP)
	JNZ  again
	STOP
	RET

// TAKE is an entry's quadwords where mask has ones.
#define TAKE(at, mask, to) \
	VPAND at(SI), mask, Y10; \
	VPOR  Y10, to, to

// func chooseFMA(dst, table *uint64, stride, first, second uint64)
//
// All 32 entries are read, whichever is wanted: X11 counts them, Y12 and Y13 are all ones where it is the one.
TEXT ·chooseFMA(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ table+8(FP), SI
	MOVQ stride+16(FP), DX

	VPBROADCASTQ first+24(FP), Y14
	VPBROADCASTQ second+32(FP), Y15
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
	TAKE(160, Y13, Y5)
	TAKE(192, Y13, Y6)
	TAKE(224, Y13, Y7)
	TAKE(256, Y13, Y8)
	TAKE(288, Y13, Y9)
	ADDQ         DX, SI
	INCQ         AX
	CMPQ         AX, $32
	JNE          entry

	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	VMOVDQU Y4, 128(DI)
	VMOVDQU Y5, 160(DI)
	VMOVDQU Y6, 192(DI)
	VMOVDQU Y7, 224(DI)
	VMOVDQU Y8, 256(DI)
	VMOVDQU Y9, 288(DI)
	VZEROUPPER
	RET
