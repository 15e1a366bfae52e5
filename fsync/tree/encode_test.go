package tree

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"saltclusterd/integration/require"
)

func nameGen() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		b := rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "name")
		for i, c := range b {
			if c == '/' || c == 0 {
				b[i] = 'x'
			}
		}
		if s := string(b); s != "." && s != ".." {
			return s
		}
		return "dot"
	})
}

func entryGen(name string) *rapid.Generator[Entry] {
	return rapid.Custom(func(t *rapid.T) Entry {
		e := Entry{Name: name, Type: rapid.SampledFrom([]Type{File, Dir, Symlink}).Draw(t, "type")}
		if e.Type != Symlink {
			e.Mode = rapid.Uint16Range(0, 0o777).Draw(t, "mode")
		}
		switch e.Type {
		case File:
			for range rapid.IntRange(0, 3).Draw(t, "chunks") {
				e.Chunks = append(e.Chunks, Chunk{Sum(rapid.SliceOf(rapid.Byte()).Draw(t, "c")),
					rapid.Uint32Range(1, MaxChunk).Draw(t, "size")})
			}
		case Dir:
			e.Object = Sum([]byte(name))
		case Symlink:
			e.Target = nameGen().Draw(t, "target")
		}
		return e
	})
}

func TestEncodeDir_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in []Entry
		for _, n := range rapid.SliceOfDistinct(nameGen(), rapid.ID[string]).Draw(t, "names") {
			in = append(in, entryGen(n).Draw(t, "entry"))
		}
		b, err := EncodeDir(in)
		require.NoError(t, err)
		out, err := DecodeDir(b)
		if err != nil || len(out) != len(in) {
			t.Fatalf("%d of %d entries, %v", len(out), len(in), err)
		}
		for i := range in {
			if in[i].Name != out[i].Name || !in[i].Equal(&out[i]) {
				t.Fatalf("%+v became %+v", in[i], out[i])
			}
		}
	})
}

func TestNamesThatNoTreeHolds(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "/", "a\x00", OwnPrefix + "x", string(make([]byte, 300))} {
		if _, err := EncodeDir([]Entry{{Name: name, Type: File}}); !errors.Is(err, ErrBadName) {
			t.Errorf("%q: %v", name, err)
		}
		e := Entry{Name: name, Type: File}
		if _, err := DecodeDir(e.appendTo(append([]byte(dirMagic), 1))); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q decoded: %v", name, err)
		}
	}
}

func TestSlotsAreReadAsWritten(t *testing.T) {
	for _, s := range []Slot{{FileRoots, "base", 0}, {PillarRoots, "a:b:c", 12}, {FileRoots, "\xff", 3}} {
		got, err := ParseSlot(s.String())
		if err != nil || got != s {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, bad := range []string{"", "file", "file:base", "file:base:-1", "file:base:01", "file::0", "other:base:0",
		"file:base:99999", "file:a\n:0"} {
		if s, err := ParseSlot(bad); err == nil {
			t.Errorf("%q is %v", bad, s)
		}
	}
}

func FuzzDecodeDir(f *testing.F) {
	b, _ := EncodeDir([]Entry{
		{Name: "a", Type: File, Mode: 0o644, Chunks: []Chunk{{Sum(nil), 5}, {Sum([]byte("x")), 300}}},
		{Name: "b\xff", Type: Dir, Mode: 0o755, Object: Sum(nil)}, {Name: "c", Type: Symlink, Target: "../a"},
	})
	f.Add(b)
	f.Add([]byte(dirMagic + "\x00"))
	f.Add([]byte(dirMagic + "\xff\xff\x0b"))
	f.Add([]byte(dirMagic + "\x01\x01\x00\x02.."))
	f.Fuzz(func(t *testing.T, in []byte) {
		entries, err := DecodeDir(in)
		if err != nil {
			return
		}
		out, err := EncodeDir(entries)
		if err != nil || !bytes.Equal(in, out) {
			t.Fatalf("%x became %x, %v", in, out, err)
		}
	})
}

func FuzzDecodeRoot(f *testing.F) {
	b, _ := EncodeRoot(Root{{FileRoots, "base", 0}: Sum(nil), {PillarRoots, "dev:x", 1}: Sum([]byte("y"))})
	f.Add(b)
	f.Add([]byte(rootMagic + "\x00"))
	f.Add([]byte(rootMagic + "\xff\xff\x03"))
	f.Fuzz(func(t *testing.T, in []byte) {
		root, err := DecodeRoot(in)
		if err != nil {
			return
		}
		out, err := EncodeRoot(root)
		if err != nil || !bytes.Equal(in, out) {
			t.Fatalf("%x became %x, %v", in, out, err)
		}
	})
}
