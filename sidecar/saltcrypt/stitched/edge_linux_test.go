package stitched

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSealBesideUnmappedMemory: nothing is read or written before the text or behind it, where there is no memory.
func TestSealBesideUnmappedMemory(t *testing.T) {
	aesKey, macKey := random(7, AESKeySize), random(8, 32)
	s := sealer(t, aesKey, macKey)
	page := os.Getpagesize()
	room, err := unix.Mmap(-1, 0, 4*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(room); err != nil {
			t.Error(err)
		}
	}()
	for _, none := range [][]byte{room[:page], room[3*page:]} {
		if err := unix.Mprotect(none, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	between := room[page : 3*page]
	for n := 2 * aesBlock; n <= len(between); n += aesBlock {
		for _, text := range [][]byte{between[:n], between[len(between)-n:]} {
			copy(text, random(uint64(n), n))
			want, wantMAC := plainly(t, aesKey, macKey, text)
			if mac := s.Seal(text); mac != wantMAC || string(text) != string(want) {
				t.Fatalf("%d bytes: differs from the standard library's", n)
			}
		}
	}
}
