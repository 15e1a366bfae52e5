package chunk

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"saltclusterd/fsync/tree"
	"saltclusterd/integration/require"
)

func content(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = r.Read(b)
	return b
}

func TestPiecesAddUp(t *testing.T) {
	c := NewCutter()
	for _, n := range []int{0, 1, Whole - 1, Whole, Whole + 1, 3 << 20, 20 << 20} {
		b := content(1, n)
		pieces, err := c.Cut(bytes.NewReader(b))
		require.NoError(t, err)
		if n > 0 && n <= Whole && len(pieces) != 1 {
			t.Errorf("%d bytes are %d pieces", n, len(pieces))
		}
		for _, p := range pieces {
			if p.Size == 0 || p.Size > tree.MaxChunk || tree.Sum(b[:p.Size]) != p.Hash {
				t.Fatalf("%d bytes: piece of %d is not what it says", n, p.Size)
			}
			b = b[p.Size:]
		}
		if len(b) != 0 {
			t.Errorf("%d bytes: %d missing", n, len(b))
		}
	}
}

func TestCutter_Insertion(t *testing.T) {
	b := content(2, 30<<20)
	before, _ := NewCutter().Cut(bytes.NewReader(b))
	edited := append(append(bytes.Clone(b[:10<<20]), "inserted"...), b[10<<20:]...)
	after, _ := NewCutter().Cut(bytes.NewReader(edited))
	known := map[tree.Hash]bool{}
	for _, p := range before {
		known[p.Hash] = true
	}
	fresh := 0
	for _, p := range after {
		if !known[p.Hash] {
			fresh++
		}
	}
	if len(before) < 10 || fresh == 0 || fresh > 4 {
		t.Errorf("%d of %d pieces are new (before: %d)", fresh, len(after), len(before))
	}
}

// What is cut must be cut the same way by every version.
func TestPlacesDoNotMove(t *testing.T) {
	pieces, _ := NewCutter().Cut(bytes.NewReader(content(3, 8<<20)))
	var sizes []uint32
	for _, p := range pieces {
		sizes = append(sizes, p.Size)
	}
	if want := []uint32{547745, 4122078, 602515, 1295877, 1820393}; !slices.Equal(sizes, want) {
		t.Errorf("pieces of %v bytes, want %v", sizes, want)
	}
}
