package wsframe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gobwas/ws"
)

const testLimit = 1 << 20

// opening is what a minion of 3008.3 sends first (aiohttp 3.14).
const opening = "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:4505\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAccept: */*\r\n" +
	"Accept-Encoding: gzip, deflate\r\nUser-Agent: Python/3.11 aiohttp/3.14.5\r\n\r\n"

// frame is one of a client.
func frame(op ws.OpCode, fin bool, body string) []byte {
	return ws.MustCompileFrame(ws.MaskFrameWith(ws.NewFrame(op, fin, []byte(body)), [4]byte{1, 2, 3, 4}))
}

func message(body string) []byte { return frame(ws.OpBinary, true, body) }

// decode feeds in to a decoder, piece bytes at a time, and copies the events. Each stop is one at which another decoder
// resumes.
func decode(in []byte, piece int, resume bool) (events []string, held int, err error) {
	d := NewDecoder(testLimit)
	for len(in) > 0 {
		part := bytes.Clone(in[:min(piece, len(in))])
		in = in[len(part):]
		for len(part) > 0 {
			ev, n, err := d.Next(part)
			if err != nil {
				return events, 0, err
			}
			part = part[n:]
			if ev.Kind != None {
				events = append(events, fmt.Sprintf("%d %s", ev.Kind, ev.Bytes))
			}
		}
		if resume {
			if d, err = ResumeDecoder(testLimit, d.State()); err != nil {
				return events, 0, err
			}
		}
	}
	return events, len(d.buf) + len(d.message), nil
}

func TestDecoder_AnyPieces(t *testing.T) {
	var stream []byte
	want := []string{"1 "}
	stream = append(stream, opening...)
	for _, body := range []string{"", "x", strings.Repeat("y", 125), strings.Repeat("z", 126), strings.Repeat("a", 70_000)} {
		stream = append(stream, message(body)...)
		want = append(want, "2 "+body)
	}
	for _, f := range [][]byte{
		frame(ws.OpPing, true, "ping"), frame(ws.OpPong, true, "pong"), frame(ws.OpBinary, false, "one "),
		frame(ws.OpPing, true, ""), frame(ws.OpContinuation, false, ""), frame(ws.OpContinuation, true, "two"),
		frame(ws.OpClose, true, "\x03\xe8"),
	} {
		stream = append(stream, f...)
	}
	want = append(want, "3 ping", "5 pong", "6 one ", "3 ", "6 ", "2 one two", "4 \x03\xe8")
	for _, piece := range []int{1, 2, 3, 7, 511, 4096, len(stream)} {
		for _, resume := range []bool{false, piece > 3} { // which copies what has arrived each time
			got, held, err := decode(stream, piece, resume)
			if err != nil || held != 0 || len(got) != len(want) {
				t.Fatalf("in pieces of %d: %d events, %d bytes held, %v", piece, len(got), held, err)
			}
			if !strings.HasPrefix(got[0], "1 HTTP/1.1 101 ") || !strings.Contains(got[0], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") ||
				strings.Contains(got[0], "Extensions") || !strings.HasSuffix(got[0], "\r\n\r\n") {
				t.Errorf("answer: %q", got[0])
			}
			if !slices.Equal(got[1:], want[1:]) {
				t.Errorf("in pieces of %d: %.300q", piece, got)
			}
		}
	}
}

func TestDecoder_Refuses(t *testing.T) {
	unmasked := ws.MustCompileFrame(ws.NewBinaryFrame([]byte("x")))
	for name, c := range map[string]struct {
		in   string
		want error
	}{
		"no GET":               {"GOT ", ErrHandshake},
		"no request":           {"GET /ws\r\n\r\n", ErrHandshake},
		"an old HTTP":          {strings.Replace(opening, "1.1", "1.0", 1), ErrHandshake},
		"no WebSocket":         {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", ErrHandshake},
		"no key":               {strings.Replace(opening, "-Key", "-Kez", 1), ErrHandshake},
		"a short key":          {strings.Replace(opening, "dGhl", "", 1), ErrHandshake},
		"another version":      {strings.Replace(opening, ": 13", ": 8", 1), ErrHandshake},
		"a large handshake":    {"GET / HTTP/1.1\r\n" + strings.Repeat("a: b\r\n", 1000), ErrTooLarge},
		"a long header":        {"GET /" + strings.Repeat("x", 10_000), ErrTooLarge},
		"no mask":              {opening + string(unmasked), ErrFrame},
		"text":                 {opening + string(frame(ws.OpText, true, "close")), ErrFrame},
		"a reserved op code":   {opening + string(frame(3, true, "")), ErrFrame},
		"a reserved bit":       {opening + "\xc2\x80\x00\x00\x00\x00", ErrFrame},
		"a large PING":         {opening + string(frame(ws.OpPing, true, strings.Repeat("x", 126))), ErrFrame},
		"half a PING":          {opening + string(frame(ws.OpPing, false, "x")), ErrFrame},
		"an end without begin": {opening + string(frame(ws.OpContinuation, true, "x")), ErrFrame},
		"a begin without end":  {opening + string(frame(ws.OpBinary, false, "x")) + string(message("y")), ErrFrame},
		"a large message":      {opening + "\x82\xff\x00\x00\x00\x00\x00\x10\x00\x01mask", ErrTooLarge},
		"a message beyond int": {opening + "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xffmask", ErrTooLarge},
		"a length below zero":  {opening + "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xffmask", ErrFrame},
		"a large one in pieces": {opening + string(frame(ws.OpBinary, false, "")) +
			strings.Repeat(string(frame(ws.OpContinuation, false, strings.Repeat("x", 1<<18))), 5), ErrTooLarge},
	} {
		for _, piece := range []int{1, 100, len(c.in)} {
			if _, _, err := decode([]byte(c.in), piece, false); !errors.Is(err, c.want) {
				t.Errorf("%s in pieces of %d: %v", name, piece, err)
			}
		}
	}
}

func TestDecoder_AnswersARefusedHandshake(t *testing.T) {
	d := NewDecoder(testLimit)
	ev, _, err := d.Next([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	if err == nil || !bytes.HasPrefix(ev.Bytes, []byte("HTTP/1.1 400 ")) {
		t.Errorf("%q, %v", ev.Bytes, err)
	}
}

// TestDecoder_MemoryFollowsWhatCame announces a large message of which little comes.
func TestDecoder_MemoryFollowsWhatCame(t *testing.T) {
	d := NewDecoder(64 << 20)
	if _, _, err := d.Next([]byte(opening)); err != nil || d.Midway() || d.Buffered() != 0 {
		t.Fatal(err, d.Midway(), d.Buffered())
	}
	in := append([]byte("\x82\xff\x00\x00\x00\x00\x03\x00\x00\x00mask"), make([]byte, 1000)...)
	if ev, n, err := d.Next(in); n != len(in) || ev.Kind != None || err != nil {
		t.Fatal(n, ev, err)
	}
	if b := d.Buffered(); b > 4*len(in) || !d.Midway() {
		t.Errorf("%d bytes held of %d", b, len(in))
	}
}

func TestResumeDecoder_Refuses(t *testing.T) {
	whole := message("x")
	for name, s := range map[string]State{
		"a whole frame":           {Opened: true, Arrived: whole},
		"more than that":          {Opened: true, Arrived: append(bytes.Clone(whole), whole[:3]...)},
		"a message before opened": {Begun: true},
		"a rest without begin":    {Opened: true, Message: []byte("x")},
		"too much":                {Opened: true, Begun: true, Message: make([]byte, testLimit+1)},
		"an opening":              {Arrived: []byte(opening)},
		"no handshake":            {Arrived: []byte("x")},
	} {
		if _, err := ResumeDecoder(testLimit, s); err == nil {
			t.Errorf("%s: resumed", name)
		}
	}
}

func readFrame(b []byte) (ws.Frame, error) {
	r := bytes.NewReader(b)
	h, err := ws.ReadHeader(r)
	if err != nil {
		return ws.Frame{}, err
	}
	f := ws.Frame{Header: h, Payload: make([]byte, h.Length)}
	_, err = io.ReadFull(r, f.Payload)
	return f, err
}

// TestAppend reads with the library what Append wrote.
func TestAppend(t *testing.T) {
	for _, size := range []int{0, 1, 120, 125, 126, 255, 256, 65530, 65535, 65536, 1 << 20} {
		payload := bytes.Repeat([]byte("p"), size)
		b := AppendPublication(nil, payload)
		if len(b) > PublicationSize(payload) {
			t.Errorf("%d bytes: %d, announced %d", size, len(b), PublicationSize(payload))
		}
		f, err := readFrame(b)
		if err != nil || ws.HeaderSize(f.Header)+len(f.Payload) != len(b) || f.Header.OpCode != ws.OpBinary ||
			ws.CheckHeader(f.Header, ws.StateClientSide) != nil || !bytes.HasSuffix(f.Payload, payload) {
			t.Errorf("%d bytes: %+v, %v", size, f.Header, err)
		}
		if head := f.Payload[:len(f.Payload)-size]; !slices.Contains([]string{"\xc4", "\xc5", "\xc6"}, string(head[:1])) {
			t.Errorf("%d bytes: begins with %q", size, head)
		}
	}
	for op, b := range map[ws.OpCode][]byte{ws.OpPing: AppendPing(nil), ws.OpPong: AppendPong(nil, []byte("x")),
		ws.OpClose: AppendClose(nil)} {
		f, err := readFrame(b)
		if err != nil || f.Header.OpCode != op || ws.CheckHeader(f.Header, ws.StateClientSide) != nil {
			t.Errorf("%v: %+v, %v", op, f, err)
		}
	}
}

// FuzzDecoder wants the same events whatever the pieces, also when each piece meets another decoder, and no more memory
// than came.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte(opening), true, uint16(3))
	f.Add(append(message("\x82\xa3enc\xa3aes\xa4load\xa3abc"), frame(ws.OpPing, true, "x")...), false, uint16(11))
	f.Add(append(frame(ws.OpBinary, false, "one"), frame(ws.OpContinuation, true, "two")...), false, uint16(1))
	f.Add([]byte("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff"), false, uint16(9))
	f.Add([]byte("\x82\xfe\x01\x00mask"), false, uint16(2))
	f.Fuzz(func(t *testing.T, in []byte, closed bool, piece uint16) {
		if !closed {
			in = append([]byte(opening), in...)
		}
		whole, held, errWhole := decode(in, max(len(in), 1), false)
		for _, resume := range []bool{false, true} {
			cut, heldCut, errCut := decode(in, int(piece)+1, resume)
			if (errWhole == nil) != (errCut == nil) || held != heldCut || !slices.Equal(whole, cut) {
				t.Fatalf("%q, %d held, %v; in pieces %q, %d, %v", whole, held, errWhole, cut, heldCut, errCut)
			}
		}
		d := NewDecoder(testLimit)
		if _, n, err := d.Next(in); err == nil && d.Buffered() > 2*n+maxHandshake {
			t.Fatalf("%d bytes held of %d", d.Buffered(), n)
		}
	})
}
