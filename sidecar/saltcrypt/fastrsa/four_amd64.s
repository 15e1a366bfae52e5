//go:build !purego

#include "textflag.h"

// Eight numbers of twenty digits of 52 bits beside each other: a register of 512 bits, of which each has the same lane, is a digit of all of them. Nothing
// goes from lane to lane, so that nothing waits for that, and no lane is nought: four operations at once take two thirds of the time of four pairs
// (ifma_amd64.s), one after the other. 1280 bytes, low digits first. Behind the moduli is the register with -1/modulus of each, modulo 2^52.
//
//	Z0-Z19   the sum, low digits first       Z20  a's digit
//	Z21      the quotient's                  Z22  -1/modulus
//	Z23      2^52-1                          Z24-Z27, Z29  scratch
//	Z28      what becomes the highest digit of the sum
//
// A digit of the sum grows by less than four times 2^52 in each round, of twenty, so that it is never cut.

// TERM adds the product of a digit, in all lanes, and the number's j-th: its lower half to low, its upper one to high.
#define TERM(from, j, digit, t, low, high) \
	VMOVDQU64   (64*j)(from), t;  \
	VPMADD52LUQ t, digit, low;    \
	VPMADD52HUQ t, digit, high

// UPPER_TERMS are all but the lowest.
#define UPPER_TERMS(from, digit) \
	TERM(from, 1, digit, Z25, Z1, Z2); \
	TERM(from, 2, digit, Z26, Z2, Z3); \
	TERM(from, 3, digit, Z27, Z3, Z4); \
	TERM(from, 4, digit, Z24, Z4, Z5); \
	TERM(from, 5, digit, Z25, Z5, Z6); \
	TERM(from, 6, digit, Z26, Z6, Z7); \
	TERM(from, 7, digit, Z27, Z7, Z8); \
	TERM(from, 8, digit, Z24, Z8, Z9); \
	TERM(from, 9, digit, Z25, Z9, Z10); \
	TERM(from, 10, digit, Z26, Z10, Z11); \
	TERM(from, 11, digit, Z27, Z11, Z12); \
	TERM(from, 12, digit, Z24, Z12, Z13); \
	TERM(from, 13, digit, Z25, Z13, Z14); \
	TERM(from, 14, digit, Z26, Z14, Z15); \
	TERM(from, 15, digit, Z27, Z15, Z16); \
	TERM(from, 16, digit, Z24, Z16, Z17); \
	TERM(from, 17, digit, Z25, Z17, Z18); \
	TERM(from, 18, digit, Z26, Z18, Z19); \
	TERM(from, 19, digit, Z27, Z19, Z28)

// REDUCE ends a round: it adds the product of the moduli and the digit that makes the sum's lowest one nought, and moves all digits down by one.
#define REDUCE \
	VPXORQ      Z21, Z21, Z21;       \
	VPMADD52LUQ Z22, Z0, Z21;        \
	TERM(DI, 0, Z21, Z24, Z0, Z1);   \
	VPSRLQ      $52, Z0, Z29;        \
	VPADDQ      Z29, Z1, Z1;         \
	UPPER_TERMS(DI, Z21);            \
	VMOVDQA64   Z1, Z0; \
	VMOVDQA64   Z2, Z1; \
	VMOVDQA64   Z3, Z2; \
	VMOVDQA64   Z4, Z3; \
	VMOVDQA64   Z5, Z4; \
	VMOVDQA64   Z6, Z5; \
	VMOVDQA64   Z7, Z6; \
	VMOVDQA64   Z8, Z7; \
	VMOVDQA64   Z9, Z8; \
	VMOVDQA64   Z10, Z9; \
	VMOVDQA64   Z11, Z10; \
	VMOVDQA64   Z12, Z11; \
	VMOVDQA64   Z13, Z12; \
	VMOVDQA64   Z14, Z13; \
	VMOVDQA64   Z15, Z14; \
	VMOVDQA64   Z16, Z15; \
	VMOVDQA64   Z17, Z16; \
	VMOVDQA64   Z18, Z17; \
	VMOVDQA64   Z19, Z18; \
	VMOVDQA64   Z28, Z19

// CARRY makes a digit of what is in a register and adds the rest to the next one.
#define CARRY(to, j, this, that) \
	VPSRLQ    $52, this, Z24;   \
	VPANDQ    Z23, this, this;  \
	VMOVDQU64 this, (64*j)(to); \
	VPADDQ    Z24, that, that

#define FINISH(to) \
	CARRY(to, 0, Z0, Z1); \
	CARRY(to, 1, Z1, Z2); \
	CARRY(to, 2, Z2, Z3); \
	CARRY(to, 3, Z3, Z4); \
	CARRY(to, 4, Z4, Z5); \
	CARRY(to, 5, Z5, Z6); \
	CARRY(to, 6, Z6, Z7); \
	CARRY(to, 7, Z7, Z8); \
	CARRY(to, 8, Z8, Z9); \
	CARRY(to, 9, Z9, Z10); \
	CARRY(to, 10, Z10, Z11); \
	CARRY(to, 11, Z11, Z12); \
	CARRY(to, 12, Z12, Z13); \
	CARRY(to, 13, Z13, Z14); \
	CARRY(to, 14, Z14, Z15); \
	CARRY(to, 15, Z15, Z16); \
	CARRY(to, 16, Z16, Z17); \
	CARRY(to, 17, Z17, Z18); \
	CARRY(to, 18, Z18, Z19); \
	VPANDQ    Z23, Z19, Z19; \
	VMOVDQU64 Z19, (64*19)(to)

#define ALL(op) \
	op(0, Z0); \
	op(1, Z1); \
	op(2, Z2); \
	op(3, Z3); \
	op(4, Z4); \
	op(5, Z5); \
	op(6, Z6); \
	op(7, Z7); \
	op(8, Z8); \
	op(9, Z9); \
	op(10, Z10); \
	op(11, Z11); \
	op(12, Z12); \
	op(13, Z13); \
	op(14, Z14); \
	op(15, Z15); \
	op(16, Z16); \
	op(17, Z17); \
	op(18, Z18); \
	op(19, Z19)

#define CLEAR(j, r)  VPXORQ    r, r, r
#define LOAD(j, r)   VMOVDQU64 (64*j)(SI), r
#define SQUARE(j, r) VMOVDQU64 (64*j)(BX), r
#define CHOSEN(j, r) VMOVDQU64 r, (64*j)(DI)

// CHOOSE loads all lanes first: a load that is masked in all of them reads nothing, and which entry is wanted would be seen in the cache.
#define CHOOSE(j, r) \
	VMOVDQU64 (64*j)(SI), Z22; \
	VMOVDQA64 Z22, K1, r

#define CONSTANTS \
	MOVQ         $0xfffffffffffff, AX; \
	VPBROADCASTQ AX, Z23;              \
	VMOVDQU64    (64*20)(DI), Z22

// func multiplyEight(dst, a, b, m *uint64)
TEXT ·multiplyEight(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DX
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ m+24(FP), DI

	CONSTANTS
	ALL(CLEAR)
	MOVQ $20, CX

digit:
	VMOVDQU64 (SI), Z20
	VPXORQ    Z28, Z28, Z28
	TERM(BX, 0, Z20, Z24, Z0, Z1)
	UPPER_TERMS(BX, Z20)
	REDUCE
	ADDQ      $64, SI
	DECQ      CX
	JNZ       digit

	FINISH(DX)
	VZEROUPPER
	RET

// EVEN and ODD add the product of two digits to what is taken twice: its lower half to this column's sum, its upper one to the next column's. An even column
// is in Z24 and, what comes from the one before, in Z20, an odd one in Z25 and Z21. To have the lower and the upper halves apart lets both be added at once.
#define EVEN(a, b) \
	VPMADD52LUQ a, b, Z24; \
	VPMADD52HUQ a, b, Z21

#define ODD(a, b) \
	VPMADD52LUQ a, b, Z25; \
	VPMADD52HUQ a, b, Z20

// Half of a digit's square goes to the column that it ends, the other half to the next one.
#define END_EVEN(j, a) \
	VPADDQ      Z24, Z20, Z20;        \
	VPADDQ      Z20, Z20, Z20;        \
	VPMADD52LUQ a, a, Z20;            \
	VMOVDQU64   Z20, (64*2*j)(BX);    \
	VPXORQ      Z20, Z20, Z20;        \
	VPXORQ      Z24, Z24, Z24

#define END_ODD(j, a) \
	VPADDQ      Z25, Z21, Z21;        \
	VPADDQ      Z21, Z21, Z21;        \
	VPMADD52HUQ a, a, Z21;            \
	VMOVDQU64   Z21, (64*(2*j+1))(BX); \
	VPXORQ      Z21, Z21, Z21;        \
	VPXORQ      Z25, Z25, Z25

// func squareEight(x, m, columns *uint64, times uint64)
//
// The square first, of twice as many digits, in columns: of two products that are the same one is taken, twice. Then twenty rounds of REDUCE.
TEXT ·squareEight(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), SI
	MOVQ m+8(FP), DI
	MOVQ columns+16(FP), BX
	MOVQ times+24(FP), R8

	CONSTANTS
	ALL(LOAD)

again:
	VPXORQ Z20, Z20, Z20
	VPXORQ Z21, Z21, Z21
	VPXORQ Z24, Z24, Z24
	VPXORQ Z25, Z25, Z25
	END_EVEN(0, Z0)
	ODD(Z0, Z1)
	END_ODD(0, Z0)
	EVEN(Z0, Z2)
	END_EVEN(1, Z1)
	ODD(Z0, Z3); ODD(Z1, Z2)
	END_ODD(1, Z1)
	EVEN(Z0, Z4); EVEN(Z1, Z3)
	END_EVEN(2, Z2)
	ODD(Z0, Z5); ODD(Z1, Z4); ODD(Z2, Z3)
	END_ODD(2, Z2)
	EVEN(Z0, Z6); EVEN(Z1, Z5); EVEN(Z2, Z4)
	END_EVEN(3, Z3)
	ODD(Z0, Z7); ODD(Z1, Z6); ODD(Z2, Z5); ODD(Z3, Z4)
	END_ODD(3, Z3)
	EVEN(Z0, Z8); EVEN(Z1, Z7); EVEN(Z2, Z6); EVEN(Z3, Z5)
	END_EVEN(4, Z4)
	ODD(Z0, Z9); ODD(Z1, Z8); ODD(Z2, Z7); ODD(Z3, Z6); ODD(Z4, Z5)
	END_ODD(4, Z4)
	EVEN(Z0, Z10); EVEN(Z1, Z9); EVEN(Z2, Z8); EVEN(Z3, Z7); EVEN(Z4, Z6)
	END_EVEN(5, Z5)
	ODD(Z0, Z11); ODD(Z1, Z10); ODD(Z2, Z9); ODD(Z3, Z8); ODD(Z4, Z7); ODD(Z5, Z6)
	END_ODD(5, Z5)
	EVEN(Z0, Z12); EVEN(Z1, Z11); EVEN(Z2, Z10); EVEN(Z3, Z9); EVEN(Z4, Z8); EVEN(Z5, Z7)
	END_EVEN(6, Z6)
	ODD(Z0, Z13); ODD(Z1, Z12); ODD(Z2, Z11); ODD(Z3, Z10); ODD(Z4, Z9); ODD(Z5, Z8); ODD(Z6, Z7)
	END_ODD(6, Z6)
	EVEN(Z0, Z14); EVEN(Z1, Z13); EVEN(Z2, Z12); EVEN(Z3, Z11); EVEN(Z4, Z10); EVEN(Z5, Z9); EVEN(Z6, Z8)
	END_EVEN(7, Z7)
	ODD(Z0, Z15); ODD(Z1, Z14); ODD(Z2, Z13); ODD(Z3, Z12); ODD(Z4, Z11); ODD(Z5, Z10); ODD(Z6, Z9); ODD(Z7, Z8)
	END_ODD(7, Z7)
	EVEN(Z0, Z16); EVEN(Z1, Z15); EVEN(Z2, Z14); EVEN(Z3, Z13); EVEN(Z4, Z12); EVEN(Z5, Z11); EVEN(Z6, Z10); EVEN(Z7, Z9)
	END_EVEN(8, Z8)
	ODD(Z0, Z17); ODD(Z1, Z16); ODD(Z2, Z15); ODD(Z3, Z14); ODD(Z4, Z13); ODD(Z5, Z12); ODD(Z6, Z11); ODD(Z7, Z10)
	ODD(Z8, Z9)
	END_ODD(8, Z8)
	EVEN(Z0, Z18); EVEN(Z1, Z17); EVEN(Z2, Z16); EVEN(Z3, Z15); EVEN(Z4, Z14); EVEN(Z5, Z13); EVEN(Z6, Z12); EVEN(Z7, Z11)
	EVEN(Z8, Z10)
	END_EVEN(9, Z9)
	ODD(Z0, Z19); ODD(Z1, Z18); ODD(Z2, Z17); ODD(Z3, Z16); ODD(Z4, Z15); ODD(Z5, Z14); ODD(Z6, Z13); ODD(Z7, Z12)
	ODD(Z8, Z11); ODD(Z9, Z10)
	END_ODD(9, Z9)
	EVEN(Z1, Z19); EVEN(Z2, Z18); EVEN(Z3, Z17); EVEN(Z4, Z16); EVEN(Z5, Z15); EVEN(Z6, Z14); EVEN(Z7, Z13); EVEN(Z8, Z12)
	EVEN(Z9, Z11)
	END_EVEN(10, Z10)
	ODD(Z2, Z19); ODD(Z3, Z18); ODD(Z4, Z17); ODD(Z5, Z16); ODD(Z6, Z15); ODD(Z7, Z14); ODD(Z8, Z13); ODD(Z9, Z12)
	ODD(Z10, Z11)
	END_ODD(10, Z10)
	EVEN(Z3, Z19); EVEN(Z4, Z18); EVEN(Z5, Z17); EVEN(Z6, Z16); EVEN(Z7, Z15); EVEN(Z8, Z14); EVEN(Z9, Z13); EVEN(Z10, Z12)
	END_EVEN(11, Z11)
	ODD(Z4, Z19); ODD(Z5, Z18); ODD(Z6, Z17); ODD(Z7, Z16); ODD(Z8, Z15); ODD(Z9, Z14); ODD(Z10, Z13); ODD(Z11, Z12)
	END_ODD(11, Z11)
	EVEN(Z5, Z19); EVEN(Z6, Z18); EVEN(Z7, Z17); EVEN(Z8, Z16); EVEN(Z9, Z15); EVEN(Z10, Z14); EVEN(Z11, Z13)
	END_EVEN(12, Z12)
	ODD(Z6, Z19); ODD(Z7, Z18); ODD(Z8, Z17); ODD(Z9, Z16); ODD(Z10, Z15); ODD(Z11, Z14); ODD(Z12, Z13)
	END_ODD(12, Z12)
	EVEN(Z7, Z19); EVEN(Z8, Z18); EVEN(Z9, Z17); EVEN(Z10, Z16); EVEN(Z11, Z15); EVEN(Z12, Z14)
	END_EVEN(13, Z13)
	ODD(Z8, Z19); ODD(Z9, Z18); ODD(Z10, Z17); ODD(Z11, Z16); ODD(Z12, Z15); ODD(Z13, Z14)
	END_ODD(13, Z13)
	EVEN(Z9, Z19); EVEN(Z10, Z18); EVEN(Z11, Z17); EVEN(Z12, Z16); EVEN(Z13, Z15)
	END_EVEN(14, Z14)
	ODD(Z10, Z19); ODD(Z11, Z18); ODD(Z12, Z17); ODD(Z13, Z16); ODD(Z14, Z15)
	END_ODD(14, Z14)
	EVEN(Z11, Z19); EVEN(Z12, Z18); EVEN(Z13, Z17); EVEN(Z14, Z16)
	END_EVEN(15, Z15)
	ODD(Z12, Z19); ODD(Z13, Z18); ODD(Z14, Z17); ODD(Z15, Z16)
	END_ODD(15, Z15)
	EVEN(Z13, Z19); EVEN(Z14, Z18); EVEN(Z15, Z17)
	END_EVEN(16, Z16)
	ODD(Z14, Z19); ODD(Z15, Z18); ODD(Z16, Z17)
	END_ODD(16, Z16)
	EVEN(Z15, Z19); EVEN(Z16, Z18)
	END_EVEN(17, Z17)
	ODD(Z16, Z19); ODD(Z17, Z18)
	END_ODD(17, Z17)
	EVEN(Z17, Z19)
	END_EVEN(18, Z18)
	ODD(Z18, Z19)
	END_ODD(18, Z18)
	END_EVEN(19, Z19)
	END_ODD(19, Z19)

	ALL(SQUARE)
	LEAQ (64*20)(BX), DX
	MOVQ $20, CX

digit:
	VMOVDQU64 (DX), Z28
	REDUCE
	ADDQ      $64, DX
	DECQ      CX
	JNZ       digit

	FINISH(SI)
	DECQ R8
	JNZ  again
	VZEROUPPER
	RET

// func chooseEight(dst, table, which *uint64)
//
// Every entry is read, whichever is wanted: AX counts them, K1 has the lanes that want it.
TEXT ·chooseEight(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ table+8(FP), SI
	MOVQ which+16(FP), BX

	VMOVDQU64 (BX), Z20
	ALL(CLEAR)
	XORQ      AX, AX

entry:
	VPBROADCASTQ AX, Z21
	VPCMPEQQ     Z21, Z20, K1
	ALL(CHOOSE)
	ADDQ         $(64*20), SI
	INCQ         AX
	CMPQ         AX, $16
	JNE          entry

	ALL(CHOSEN)
	VZEROUPPER
	RET
