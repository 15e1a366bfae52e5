package stitched

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// plainly is what the standard library makes of text.
func plainly(tb testing.TB, aesKey, macKey, text []byte) (sealed []byte, mac [MACSize]byte) {
	tb.Helper()
	block, err := aes.NewCipher(aesKey)
	if err != nil {
		tb.Fatal(err)
	}
	sealed = bytes.Clone(text)
	cipher.NewCBCEncrypter(block, text[:aesBlock]).CryptBlocks(sealed[aesBlock:], text[aesBlock:])
	h := hmac.New(sha256.New, macKey)
	h.Write(sealed)
	return sealed, [MACSize]byte(h.Sum(nil))
}

func sealer(tb testing.TB, aesKey, macKey []byte) *Sealer {
	tb.Helper()
	if !supported {
		tb.Skip("this processor has not got AES-NI and the SHA extensions")
	}
	s := New(aesKey, macKey)
	if s == nil {
		tb.Fatal("New refused good keys")
	}
	return s
}

func random(seed uint64, n int) []byte {
	out := make([]byte, n)
	c := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = c.Read(out)
	return out
}

func compare(tb testing.TB, s *Sealer, aesKey, macKey, text []byte) {
	tb.Helper()
	want, wantMAC := plainly(tb, aesKey, macKey, text)
	got := bytes.Clone(text)
	gotMAC := s.Seal(got)
	if !bytes.Equal(got, want) {
		tb.Fatalf("%d bytes: ciphertext differs from the standard library's", len(text))
	}
	if gotMAC != wantMAC {
		tb.Fatalf("%d bytes: the MAC differs from the standard library's", len(text))
	}
}

// TestSealIsTheStandardLibrarys goes through every length around the borders of blocks and pieces.
func TestSealIsTheStandardLibrarys(t *testing.T) {
	aesKey, macKey := random(1, AESKeySize), random(2, 32)
	s := sealer(t, aesKey, macKey)
	text := random(3, 3*piece*shaBlock)
	for n := 2 * aesBlock; n <= 20*shaBlock; n += aesBlock {
		compare(t, s, aesKey, macKey, text[:n])
	}
	for _, around := range []int{piece * shaBlock, (piece + 1) * shaBlock, 2 * piece * shaBlock} {
		for n := around - 2*shaBlock; n <= around+2*shaBlock; n += aesBlock {
			compare(t, s, aesKey, macKey, text[:n])
		}
	}
}

func TestSealAnywhereInMemory(t *testing.T) {
	aesKey, macKey := random(4, AESKeySize), random(5, 32)
	s := sealer(t, aesKey, macKey)
	for offset := range 17 {
		buf := random(6, 40*aesBlock+offset+17)
		text := buf[offset : offset+40*aesBlock]
		before, after := bytes.Clone(buf[:offset]), bytes.Clone(buf[offset+len(text):])
		want, wantMAC := plainly(t, aesKey, macKey, text)
		if mac := s.Seal(text); mac != wantMAC || !bytes.Equal(text, want) {
			t.Fatalf("at offset %d: differs from the standard library's", offset)
		}
		if !bytes.Equal(buf[:offset], before) || !bytes.Equal(buf[offset+len(text):], after) {
			t.Fatalf("at offset %d: wrote beside the text", offset)
		}
	}
}

func TestManyKeys(t *testing.T) {
	for i := range uint64(300) {
		aesKey, macKey := random(100+i, AESKeySize), random(1000+i, int(i%65))
		compare(t, sealer(t, aesKey, macKey), aesKey, macKey, random(2000+i, 30*aesBlock))
	}
}

// TestSum: any length, of which those of texts are only the ones in whole blocks of AES.
func TestSum(t *testing.T) {
	sealer(t, make([]byte, AESKeySize), nil)
	all := random(10, 4*shaBlock)
	for n := shaBlock; n <= len(all); n++ {
		d := keyed(all[:shaBlock], 0)
		if d.sum(all[shaBlock:n], uint64(n)) != sha256.Sum256(all[:n]) {
			t.Fatalf("%d bytes: differs from the standard library's", n)
		}
	}
}

func TestSealConcurrently(t *testing.T) {
	aesKey, macKey := random(11, AESKeySize), random(12, 32)
	s := sealer(t, aesKey, macKey)
	var wg sync.WaitGroup
	for i := range uint64(4) {
		wg.Go(func() {
			for n := range 50 {
				text := random(i, (2+n*90)*aesBlock)
				want, wantMAC := plainly(t, aesKey, macKey, text)
				if mac := s.Seal(text); mac != wantMAC || !bytes.Equal(text, want) {
					t.Errorf("%d bytes: differs from the standard library's", len(text))
				}
			}
		})
	}
	wg.Wait()
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct{ aes, mac int }{{16, 32}, {32, 32}, {0, 32}, {24, 65}} {
		if New(make([]byte, c.aes), make([]byte, c.mac)) != nil {
			t.Errorf("New took keys of %d and %d bytes", c.aes, c.mac)
		}
	}
}

func TestSealPanicsOnHalfBlocks(t *testing.T) {
	s := sealer(t, make([]byte, AESKeySize), nil)
	for _, n := range []int{0, 1, 15, 16, 17, 31, 33, 100} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a text of %d bytes was taken", n)
				}
			}()
			s.Seal(make([]byte, n))
		}()
	}
}

func TestSealAllocatesNothing(t *testing.T) {
	s := sealer(t, random(7, AESKeySize), random(8, 32))
	text := random(9, 8<<10)
	if n := testing.AllocsPerRun(100, func() { s.Seal(text) }); n != 0 {
		t.Errorf("%v allocations per text, want none", n)
	}
}

func TestPrintsNoKeys(t *testing.T) {
	s := sealer(t, []byte("AAAAAAAAAAAAAAAAAAAAAAAA"), []byte("B"))
	var out strings.Builder
	fmt.Fprintf(&out, "%v %+v %#v %x %s", s, s, s, s, s)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "sealer", s)
	if text := out.String(); strings.Contains(text, "AAAA") || strings.Contains(text, "4141") || strings.Contains(text, "65 65") {
		t.Errorf("a key was printed: %s", text)
	}
}

// FuzzSeal compares with the standard library for any keys and text; what is no whole block at the end is left out.
func FuzzSeal(f *testing.F) {
	f.Add([]byte("0123456789abcdef01234567"), []byte("key"), bytes.Repeat([]byte("salt"), 100))
	f.Add(make([]byte, AESKeySize), make([]byte, 32), make([]byte, 2*aesBlock))
	f.Add(random(1, AESKeySize), random(2, 64), random(3, 8*shaBlock+aesBlock))
	f.Fuzz(func(t *testing.T, aesKey, macKey, text []byte) {
		if len(aesKey) != AESKeySize || len(macKey) > shaBlock {
			if New(aesKey, macKey) != nil {
				t.Fatal("New took keys of wrong lengths")
			}
			return
		}
		text = text[:len(text)/aesBlock*aesBlock]
		if len(text) <= aesBlock {
			return
		}
		compare(t, sealer(t, aesKey, macKey), aesKey, macKey, text)
	})
}

func BenchmarkSeal(b *testing.B) {
	aesKey, macKey := random(1, AESKeySize), random(2, 32)
	s := sealer(b, aesKey, macKey)
	for _, size := range []int{1 << 10, 4 << 10, 1 << 20} {
		text := random(3, size)
		b.Run(fmt.Sprintf("%dKiB/stitched", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				s.Seal(text)
			}
		})
		block, err := aes.NewCipher(aesKey)
		if err != nil {
			b.Fatal(err)
		}
		enc := cipher.NewCBCEncrypter(block, text[:aesBlock])
		b.Run(fmt.Sprintf("%dKiB/encrypted", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				enc.CryptBlocks(text[aesBlock:], text[aesBlock:])
			}
		})
		h := hmac.New(sha256.New, macKey)
		b.Run(fmt.Sprintf("%dKiB/hashed", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				h.Reset()
				h.Write(text)
				h.Sum(nil)
			}
		})
	}
}
