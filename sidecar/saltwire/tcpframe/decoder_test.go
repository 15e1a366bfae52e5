package tcpframe

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

const testLimit = 1 << 20

// request is the frame of a request.
func request(mid, body string) []byte {
	return append(AppendReplyHead(nil, []byte("\x81\xa3mid"+mid)), body...)
}

// decode feeds in to a decoder, piece bytes at a time, and copies the frames.
func decode(in []byte, piece int) (frames []Frame, rest int, err error) {
	d := NewDecoder(testLimit)
	for len(in) > 0 {
		part := in[:min(piece, len(in))]
		in = in[len(part):]
		for len(part) > 0 {
			f, n, ok, err := d.Next(part)
			if err != nil {
				return frames, 0, err
			}
			part = part[n:]
			if ok {
				frames = append(frames, Frame{Head: bytes.Clone(f.Head), Body: bytes.Clone(f.Body)})
			}
		}
	}
	return frames, len(d.Arrived()), nil
}

func TestDecoder_AnyPieces(t *testing.T) {
	bodies := []string{
		"\xc0", "\x07", "\xff", "\xc3", "\xa0", "\xa3abc", "\xd9\x02ab", "\xc4\x01x", "\x80", "\x90", "\xdc\x00\x02\x01\xa1x",
		"\xde\x00\x01\xa1k\x81\xa1k\x92\x01\xcb12345678", "\xd4xy", "\xc7\x01xy", "\xcf12345678", "\xd1ab",
		"\xda\x10\x00" + strings.Repeat("r", 0x1000), string(saltwire.AppendRaw(nil, strings.Repeat("R", 100_000))),
	}
	var stream []byte
	for i, b := range bodies {
		stream = append(stream, request(string(rune(i)), b)...)
	}
	for _, piece := range []int{1, 2, 3, 7, 511, 512, 513, 4096, len(stream)} {
		frames, rest, err := decode(stream, piece)
		if err != nil || rest != 0 || len(frames) != len(bodies) {
			t.Fatalf("in pieces of %d: %d frames, %d bytes left, %v", piece, len(frames), rest, err)
		}
		for i, f := range frames {
			if string(f.Body) != bodies[i] || string(f.Head) != "\x81\xa3mid"+string(rune(i)) {
				t.Errorf("in pieces of %d: frame %d is %.40q %.40q", piece, i, f.Head, f.Body)
			}
		}
	}
}

func TestDecoder_Refuses(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want error
	}{
		"no map":            {"\xff\x00", ErrFrame},
		"one pair":          {"\x81\xa4body\xc0", ErrFrame},
		"two bodies":        {"\x82\xa4body\xc0\xa4body\xc0", ErrFrame},
		"other keys":        {"\x82\xa4head\x80\xa3bod\xc0", ErrFrame},
		"a key that is not": {"\x82\xa4head\x80\x90\xc0", ErrFrame},
		"a head that is no": {"\x82\xa4head\xc0\xa4body\xc0", ErrFrame},
		"an unused type":    {"\x82\xa4head\x80\xa4body\xc1", ErrFrame},
		"a long head":       {"\x82\xa4head\x81\xa3mid\xda\x02\x00" + strings.Repeat("m", 512) + "\xa4body\xc0", ErrTooLarge},
		"a long body":       {"\x82\xa4head\x80\xa4body\xdb\x00\x10\x00\x00", ErrTooLarge},
		"many values":       {"\x82\xa4head\x80\xa4body\xdd\xff\xff\xff\xff", ErrTooLarge},
		"many pairs":        {"\x82\xa4head\x80\xa4body\xdf\xff\xff\xff\xff", ErrTooLarge},
		"deep":              {"\x82\xa4head\x80\xa4body" + strings.Repeat("\x91", 100), ErrTooDeep},
	} {
		for _, piece := range []int{1, len(c.in)} {
			if _, _, err := decode([]byte(c.in), piece); !errors.Is(err, c.want) {
				t.Errorf("%s in pieces of %d: %v", name, piece, err)
			}
		}
	}
}

// TestDecoder_MemoryFollowsWhatCame announces a large body of which little comes.
func TestDecoder_MemoryFollowsWhatCame(t *testing.T) {
	d := NewDecoder(64 << 20)
	in := append([]byte("\x82\xa4head\x80\xa4body\xdb\x03\x00\x00\x00"), make([]byte, 1000)...)
	if _, n, ok, err := d.Next(in); n != len(in) || ok || err != nil {
		t.Fatal(n, ok, err)
	}
	if b := d.Buffered(); b > 4*len(in) {
		t.Errorf("%d bytes held of %d", b, len(in))
	}
	if !d.Midway() {
		t.Error("not midway")
	}
}

func TestDecoder_IdleHoldsNothing(t *testing.T) {
	d := NewDecoder(testLimit)
	for _, piece := range [][]byte{request("\x01", "\xa3abc")[:9], request("\x01", "\xa3abc")[9:]} {
		if _, _, _, err := d.Next(piece); err != nil {
			t.Fatal(err)
		}
	}
	if d.Midway() || d.Buffered() != 0 {
		t.Errorf("%d bytes held", d.Buffered())
	}
}

func TestResume(t *testing.T) {
	in := request("\x05", "\x92\xa3abc\xda\x03\x00"+strings.Repeat("x", 0x300))
	for cut := range len(in) {
		old := NewDecoder(testLimit)
		if _, _, _, err := old.Next(in[:cut]); err != nil {
			t.Fatal(err)
		}
		d, err := Resume(testLimit, old.Arrived())
		require.NoError(t, err)
		f, n, ok, err := d.Next(in[cut:])
		if err != nil || !ok || n != len(in)-cut || !bytes.Equal(AppendReplyHead(nil, f.Head), in[:len(in)-len(f.Body)]) {
			t.Fatalf("cut at %d: %v %d %v", cut, ok, n, err)
		}
	}
	for _, bad := range [][]byte{in, append(bytes.Clone(in), in[:5]...), []byte("x")} {
		if _, err := Resume(testLimit, bad); err == nil {
			t.Errorf("resumed in %.20q", bad)
		}
	}
}

func TestNext_AllocatesNothingForAWholeFrame(t *testing.T) {
	d := NewDecoder(testLimit)
	in := request("\x05", "\x82\xa3enc\xa3aes\xa4load\xa3abc")
	if n := testing.AllocsPerRun(100, func() { _, _, _, _ = d.Next(in) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzDecoder wants the same frames whatever the pieces, each a part of the input, and no more memory than came.
func FuzzDecoder(f *testing.F) {
	f.Add(request("\x01", "\xa3abc"), uint16(3))
	f.Add(append(request("\x01", "\x82\xa3enc\xa3aes\xa4load\xa3abc"), request("\xa1x", "\x91\xc0")...), uint16(11))
	f.Add([]byte("\x82\xa4body\xd9\x03abc\xa4head\x80"), uint16(1))
	f.Add([]byte("\x82\xa4head\x80\xa4body\xdb\xff\xff\xff\xff"), uint16(9))
	for _, g := range golden(f) {
		for _, s := range append(g.Requests, g.Publications...) {
			f.Add(s.Minion, uint16(4095))
			f.Add(s.Master, uint16(700))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, piece uint16) {
		whole, rest, errWhole := decode(in, len(in))
		cut, restCut, errCut := decode(in, int(piece)+1)
		if fmt.Sprint(errWhole) != fmt.Sprint(errCut) || rest != restCut || len(whole) != len(cut) {
			t.Fatalf("%d frames, %d left, %v; in pieces %d, %d, %v", len(whole), rest, errWhole, len(cut), restCut, errCut)
		}
		for i, f := range whole {
			if !bytes.Equal(f.Head, cut[i].Head) || !bytes.Equal(f.Body, cut[i].Body) || len(f.Body) == 0 {
				t.Fatalf("frame %d: %q %q, in pieces %q %q", i, f.Head, f.Body, cut[i].Head, cut[i].Body)
			}
			if !bytes.Contains(in, f.Head) || !bytes.Contains(in, f.Body) {
				t.Fatalf("frame %d is not part of the input", i)
			}
		}
		d := NewDecoder(testLimit)
		_, n, ok, err := d.Next(in)
		if err == nil && !ok && d.Buffered() > 2*n+minStep {
			t.Fatalf("%d bytes held of %d", d.Buffered(), n)
		}
		if err == nil && !ok {
			if _, err := Resume(testLimit, d.Arrived()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
