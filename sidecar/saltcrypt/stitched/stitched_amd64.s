//go:build !purego

#include "textflag.h"

// Registers, everywhere in this file:
//
//	AX  the expanded AES key          X0      what SHA256RNDS2 takes: words of the message and constants, added
//	SI  where in the text             X1, X2  the digest, as ABEF and CDGH
//	CX  blocks to go                  X3      scratch of the message schedule
//	DI  the digest in memory          X4-X7   sixteen words of the message schedule
//	R8  SHA-256's constants           X8      the mask that makes words big-endian
//	R9  the chaining block            X9, X10 the digest before this block
//	                                  X11     the chaining block
//	                                  X12-13  scratch of AES
//
// Groups of four SHA rounds and parts of AES take turns; neither uses what the other does, and the processor runs them beside each other.

// WORDS adds a group's constants to its words, runs two rounds and, with LATER, the other two.
#define WORDS(group, m) \
	MOVOU      (group*16)(R8), X0; \
	PADDL      m, X0;              \
	SHA256RNDS2 X0, X1, X2

#define LATER \
	PSHUFD $0x0e, X0, X0; \
	SHA256RNDS2 X0, X2, X1

// READ takes the words of one of the first four groups from the text.
#define READ(group, m) \
	MOVOU  (group*16)(SI), m; \
	PSHUFB X8, m

// NEXT finishes the words of the next group, in next, from this group's and those of the one before it.
#define NEXT(m, before, next) \
	MOVO       m, X3;          \
	PALIGNR    $4, before, X3; \
	PADDL      X3, next;       \
	SHA256MSG2 m, next

// The sixteen groups: which of the steps each has depends on where it stands.
#define FIRST(m)                     READ(0, m); WORDS(0, m); LATER
#define SECOND(m, before)            READ(1, m); WORDS(1, m); LATER; SHA256MSG1 m, before
#define THIRD(m, before)             READ(2, m); WORDS(2, m); LATER; SHA256MSG1 m, before
#define FOURTH(m, before, next)      READ(3, m); WORDS(3, m); NEXT(m, before, next); LATER; SHA256MSG1 m, before
#define GROUP(g, m, before, next)    WORDS(g, m); NEXT(m, before, next); LATER; SHA256MSG1 m, before
#define ENDING(g, m, before, next)   WORDS(g, m); NEXT(m, before, next); LATER
#define LAST(m)                      WORDS(15, m); LATER

// ROUND is one of AES, BEGIN the whitening of a block with the one before it, END the last round.
#define ROUND(r) \
	MOVOU  (r*16)(AX), X13; \
	AESENC X13, X11

#define BEGIN(offset) \
	MOVOU offset(SI), X12; \
	MOVOU (AX), X13;       \
	PXOR  X13, X12;        \
	PXOR  X12, X11;        \
	ROUND(1); ROUND(2); ROUND(3)

#define MIDDLE \
	ROUND(4); ROUND(5); ROUND(6)

#define MIDDLE2 \
	ROUND(7); ROUND(8); ROUND(9)

#define END(offset) \
	ROUND(10); ROUND(11);      \
	MOVOU      192(AX), X13;   \
	AESENCLAST X13, X11;       \
	MOVOU      X11, offset(SI)

// LOAD and STORE change between the digest's eight words in order and the two registers of SHA256RNDS2; X0 and X3 are used.
#define LOAD \
	MOVOU   (DI), X0;       \
	MOVOU   16(DI), X2;     \
	PSHUFD  $0xb1, X0, X0;  \
	PSHUFD  $0x1b, X2, X2;  \
	MOVO    X0, X1;         \
	PALIGNR $8, X2, X1;     \
	PBLENDW $0xf0, X0, X2

#define STORE \
	PSHUFD  $0x1b, X1, X0;  \
	PSHUFD  $0xb1, X2, X2;  \
	MOVO    X0, X1;         \
	PBLENDW $0xf0, X2, X1;  \
	PALIGNR $8, X0, X2;     \
	MOVOU   X1, (DI);       \
	MOVOU   X2, 16(DI)

// func both(keys *schedule, chain *[aesBlock]byte, d *digest, p *byte, n int)
TEXT ·both(SB), NOSPLIT, $0-40
	MOVQ  keys+0(FP), AX
	MOVQ  chain+8(FP), R9
	MOVQ  d+16(FP), DI
	MOVQ  p+24(FP), SI
	MOVQ  n+32(FP), CX
	LEAQ  ·constants(SB), R8
	MOVOU ·bigEndian(SB), X8
	MOVOU (R9), X11
	LOAD

next:
	MOVO X1, X9
	MOVO X2, X10

	FIRST(X4)
	BEGIN(64)
	SECOND(X5, X4)
	MIDDLE
	THIRD(X6, X5)
	MIDDLE2
	FOURTH(X7, X6, X4)
	END(64)
	GROUP(4, X4, X7, X5)
	BEGIN(80)
	GROUP(5, X5, X4, X6)
	MIDDLE
	GROUP(6, X6, X5, X7)
	MIDDLE2
	GROUP(7, X7, X6, X4)
	END(80)
	GROUP(8, X4, X7, X5)
	BEGIN(96)
	GROUP(9, X5, X4, X6)
	MIDDLE
	GROUP(10, X6, X5, X7)
	MIDDLE2
	GROUP(11, X7, X6, X4)
	END(96)
	GROUP(12, X4, X7, X5)
	BEGIN(112)
	ENDING(13, X5, X4, X6)
	MIDDLE
	ENDING(14, X6, X5, X7)
	MIDDLE2
	LAST(X7)
	END(112)

	PADDL X9, X1
	PADDL X10, X2
	ADDQ  $64, SI
	DECQ  CX
	JNZ   next

	STORE
	MOVOU X11, (R9)
	RET

// func encrypt(keys *schedule, chain *[aesBlock]byte, p *byte, n int)
TEXT ·encrypt(SB), NOSPLIT, $0-32
	MOVQ  keys+0(FP), AX
	MOVQ  chain+8(FP), R9
	MOVQ  p+16(FP), SI
	MOVQ  n+24(FP), CX
	MOVOU (R9), X11

	TESTQ CX, CX
	JZ    done

block:
	BEGIN(0)
	MIDDLE
	MIDDLE2
	END(0)
	ADDQ $16, SI
	DECQ CX
	JNZ  block

done:
	MOVOU X11, (R9)
	RET

// func hash(d *digest, p *byte, n int)
TEXT ·hash(SB), NOSPLIT, $0-24
	MOVQ  d+0(FP), DI
	MOVQ  p+8(FP), SI
	MOVQ  n+16(FP), CX
	LEAQ  ·constants(SB), R8
	MOVOU ·bigEndian(SB), X8
	LOAD

next:
	MOVO X1, X9
	MOVO X2, X10

	FIRST(X4)
	SECOND(X5, X4)
	THIRD(X6, X5)
	FOURTH(X7, X6, X4)
	GROUP(4, X4, X7, X5)
	GROUP(5, X5, X4, X6)
	GROUP(6, X6, X5, X7)
	GROUP(7, X7, X6, X4)
	GROUP(8, X4, X7, X5)
	GROUP(9, X5, X4, X6)
	GROUP(10, X6, X5, X7)
	GROUP(11, X7, X6, X4)
	GROUP(12, X4, X7, X5)
	ENDING(13, X5, X4, X6)
	ENDING(14, X6, X5, X7)
	LAST(X7)

	PADDL X9, X1
	PADDL X10, X2
	ADDQ  $64, SI
	DECQ  CX
	JNZ   next

	STORE
	RET

// func substitute(w uint32) uint32
TEXT ·substitute(SB), NOSPLIT, $0-12
	MOVL            w+0(FP), X0
	PSHUFD          $0, X0, X0
	AESKEYGENASSIST $0, X0, X0 // the lowest word of the result is the S-box of the second one
	MOVD            X0, DX
	MOVL            DX, ret+8(FP)
	RET

// How PSHUFB turns each word around.
DATA ·bigEndian+0(SB)/8, $0x0405060700010203
DATA ·bigEndian+8(SB)/8, $0x0c0d0e0f08090a0b
GLOBL ·bigEndian(SB), NOPTR|RODATA, $16

// The constants of SHA-256's rounds (FIPS 180-4, 4.2.2).
DATA ·constants+0(SB)/8, $0x71374491428a2f98
DATA ·constants+8(SB)/8, $0xe9b5dba5b5c0fbcf
DATA ·constants+16(SB)/8, $0x59f111f13956c25b
DATA ·constants+24(SB)/8, $0xab1c5ed5923f82a4
DATA ·constants+32(SB)/8, $0x12835b01d807aa98
DATA ·constants+40(SB)/8, $0x550c7dc3243185be
DATA ·constants+48(SB)/8, $0x80deb1fe72be5d74
DATA ·constants+56(SB)/8, $0xc19bf1749bdc06a7
DATA ·constants+64(SB)/8, $0xefbe4786e49b69c1
DATA ·constants+72(SB)/8, $0x240ca1cc0fc19dc6
DATA ·constants+80(SB)/8, $0x4a7484aa2de92c6f
DATA ·constants+88(SB)/8, $0x76f988da5cb0a9dc
DATA ·constants+96(SB)/8, $0xa831c66d983e5152
DATA ·constants+104(SB)/8, $0xbf597fc7b00327c8
DATA ·constants+112(SB)/8, $0xd5a79147c6e00bf3
DATA ·constants+120(SB)/8, $0x1429296706ca6351
DATA ·constants+128(SB)/8, $0x2e1b213827b70a85
DATA ·constants+136(SB)/8, $0x53380d134d2c6dfc
DATA ·constants+144(SB)/8, $0x766a0abb650a7354
DATA ·constants+152(SB)/8, $0x92722c8581c2c92e
DATA ·constants+160(SB)/8, $0xa81a664ba2bfe8a1
DATA ·constants+168(SB)/8, $0xc76c51a3c24b8b70
DATA ·constants+176(SB)/8, $0xd6990624d192e819
DATA ·constants+184(SB)/8, $0x106aa070f40e3585
DATA ·constants+192(SB)/8, $0x1e376c0819a4c116
DATA ·constants+200(SB)/8, $0x34b0bcb52748774c
DATA ·constants+208(SB)/8, $0x4ed8aa4a391c0cb3
DATA ·constants+216(SB)/8, $0x682e6ff35b9cca4f
DATA ·constants+224(SB)/8, $0x78a5636f748f82ee
DATA ·constants+232(SB)/8, $0x8cc7020884c87814
DATA ·constants+240(SB)/8, $0xa4506ceb90befffa
DATA ·constants+248(SB)/8, $0xc67178f2bef9a3f7
GLOBL ·constants(SB), NOPTR|RODATA, $256
