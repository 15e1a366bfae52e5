package zmtp

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"saltclusterd/integration/require"
)

// decode feeds in to a fresh decoder in pieces of the given size and copies
// out what it tells.
func decode(in []byte, piece int, ready bool, limits Limits) (events []Event, d Decoder, err error) {
	l := limits.WithDefaults()
	d = NewDecoder(&l)
	if ready {
		d.SetReady()
	}
	for len(in) > 0 {
		chunk := in[:min(piece, len(in))]
		in = in[len(chunk):]
		for len(chunk) > 0 {
			ev, n, err := d.Next(chunk)
			if err != nil {
				return events, d, err
			}
			if n == 0 && ev.Kind == None {
				return events, d, errors.New("no progress")
			}
			chunk = chunk[n:]
			if ev.Kind != None {
				ev.Body = bytes.Clone(ev.Body)
				ev.Owned = false
				events = append(events, ev)
			}
		}
	}
	return events, d, nil
}

func sample() []byte {
	b := AppendGreeting(nil)
	b = AppendReady(b, "REQ", "me")
	b = AppendMessage(b, []byte("id"), nil, bytes.Repeat([]byte("body"), 100))
	b = AppendPing(b, 3, []byte("ctx"))
	b = AppendSubscribe(b, []byte("topic"))
	b = AppendCommand(b, CmdPong, make([]byte, 300))
	b = AppendMessage(b, nil)
	return AppendMessage(b, bytes.Repeat([]byte("large"), 5000))
}

// TestDecoderAnyPieces wants the same events however the bytes arrive.
func TestDecoderAnyPieces(t *testing.T) {
	in := sample()
	want, _, err := decode(in, len(in), true, Limits{})
	if err != nil || len(want) != 10 {
		t.Fatalf("%d events, %v", len(want), err)
	}
	for piece := 1; piece < len(in); piece += 1 + piece/7 {
		got, d, err := decode(in, piece, true, Limits{})
		require.NoError(t, err)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("pieces of %d: %d events differ", piece, len(got))
		}
		if d.Midway() || d.Buffered() != 0 {
			t.Fatalf("pieces of %d: something is left", piece)
		}
	}
}

func TestDecoderRefusals(t *testing.T) {
	g := func(b ...byte) []byte { return append(AppendGreeting(nil), b...) }
	limits := Limits{MaxFrame: 1000, MaxParts: 3, MaxMessage: 1500, MaxCommand: 100}
	for _, c := range []struct {
		name  string
		in    []byte
		early bool // before READY
		want  error
	}{
		{"first byte", []byte{0}, false, ErrNotZMTP},
		{"signature end", append(g()[:9:9], 0x7e), false, ErrNotZMTP},
		{"major 2", append(g()[:10:10], 2), false, ErrNotZMTP},
		{"mechanism", append(g()[:12:12], 'P'), false, ErrMechanism},
		{"mechanism padding", append(g()[:16:16], 'X'), false, ErrMechanism},
		{"reserved flag", g(0x08, 0), false, ErrFlags},
		{"command with more", g(0x05, 0), false, ErrFlags},
		{"2^62", g(0x02, 0x40, 0, 0, 0, 0, 0, 0, 0), false, ErrFrameTooLarge},
		{"2^64-1", g(0x02, 255, 255, 255, 255, 255, 255, 255, 255), false, ErrFrameTooLarge},
		{"frame", AppendFrameHeader(g(), 1001, false), false, ErrFrameTooLarge},
		{"command", AppendCommand(g(), "X", make([]byte, 99)), false, ErrCommandTooLarge},
		{"message", AppendMessage(g(), make([]byte, 1000), make([]byte, 501)), false, ErrMessageTooLarge},
		{"parts", AppendMessage(g(), nil, nil, nil, nil), false, ErrTooManyParts},
		{"command in message", AppendPing(AppendFrame(g(), nil, true), 0, nil), false, ErrFlags},
		{"data early", AppendMessage(g(), nil), true, ErrHandshake},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			if _, _, err := decode(c.in, piece, !c.early, limits); !errors.Is(err, c.want) {
				t.Errorf("%s in pieces of %d: got %v, want %v", c.name, piece, err, c.want)
			}
		}
	}
	ok := AppendMessage(AppendMessage(g(), make([]byte, 1000), make([]byte, 500), nil), make([]byte, 1000))
	if _, _, err := decode(AppendCommand(ok, "X", make([]byte, 98)), 13, true, limits); err != nil {
		t.Errorf("just within the limits: %v", err)
	}
}

// TestDecoderMemoryFollowsArrival announces a lot and sends little.
func TestDecoderMemoryFollowsArrival(t *testing.T) {
	l := Limits{MaxFrame: 1 << 40, MaxMessage: 1 << 40}.WithDefaults()
	d := NewDecoder(&l)
	d.SetReady()
	in := AppendFrameHeader(AppendGreeting(nil), 1<<39, false)
	arrived := 0
	for len(in) > 0 {
		_, n, err := d.Next(in)
		require.NoError(t, err)
		in = in[n:]
	}
	var sent []byte
	for i := range 300 {
		piece := make([]byte, 1000+i*200)
		piece[0] = byte(i)
		_, n, err := d.Next(piece)
		require.NoError(t, err)
		sent = append(sent, piece...)
		if arrived += n; d.Buffered() > max(2*arrived, firstGrab) || d.Buffered() > arrived+maxGrab {
			t.Fatalf("%d bytes held for %d", d.Buffered(), arrived)
		}
	}
	if next, err := ResumeDecoder(&l, d.State()); err != nil || !bytes.Equal(next.joinBody(), sent) {
		t.Errorf("another process gets something else: %v", err)
	}
}

// TestDecoderLargeBodies wants bodies whole that were kept in pieces.
func TestDecoderLargeBodies(t *testing.T) {
	for _, size := range []int{maxGrab - 1, maxGrab, 3*maxGrab + 17} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(i / 251)
		}
		in := AppendMessage(AppendGreeting(nil), body, []byte("next"))
		for _, piece := range []int{1500, 64 << 10, len(in) - 7} {
			events, d, err := decode(in, piece, true, Limits{})
			if err != nil || len(events) != 3 || !bytes.Equal(events[1].Body, body) || string(events[2].Body) != "next" ||
				d.Buffered() != 0 {
				t.Errorf("%d bytes in pieces of %d: %d events, %v", size, piece, len(events), err)
			}
		}
	}
}

func TestMinorVersion(t *testing.T) {
	for _, c := range []struct {
		major, minor byte
		want         int
	}{{3, 0, 0}, {3, 1, 1}, {4, 0, 1}} {
		g := AppendGreeting(nil)
		g[greetingMajor], g[greetingMinor] = c.major, c.minor
		_, d, err := decode(g, 64, false, Limits{})
		if err != nil || d.Minor() != c.want {
			t.Errorf("%d.%d: minor %d, %v", c.major, c.minor, d.Minor(), err)
		}
	}
}

func TestMessageSize(t *testing.T) {
	for _, parts := range [][][]byte{{nil}, {nil, make([]byte, 255)}, {make([]byte, 256), make([]byte, 70000)}} {
		if got, want := MessageSize(parts...), len(AppendMessage(nil, parts...)); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}
