package zmtp

import (
	"bytes"
	"fmt"
	"testing"
)

// FuzzDecoder wants any bytes to be refused or decoded, the same way however
// they are cut, within the limits.
func FuzzDecoder(f *testing.F) {
	f.Add(sample(), uint8(3), true)
	f.Add(AppendGreeting(nil), uint8(1), false)
	f.Add(append(AppendGreeting(nil), 2, 0x40, 0, 0, 0, 0, 0, 0, 0), uint8(5), true)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint8(2), false)
	f.Add(AppendMessage(AppendGreeting(nil), nil, nil, nil, nil, nil, nil), uint8(9), true)
	limits := Limits{MaxFrame: 3000, MaxParts: 4, MaxMessage: 4000, MaxCommand: 300}
	f.Fuzz(func(t *testing.T, in []byte, piece uint8, ready bool) {
		whole, d, err := decode(in, len(in)+1, ready, limits)
		cut, _, cutErr := decode(in, int(piece)+1, ready, limits)
		if fmt.Sprint(err) != fmt.Sprint(cutErr) || fmt.Sprint(whole) != fmt.Sprint(cut) {
			t.Fatalf("in pieces of %d: %v, %v\nwhole: %v, %v", piece+1, cut, cutErr, whole, err)
		}
		if d.Buffered() > 3000 {
			t.Fatalf("%d bytes held", d.Buffered())
		}
		parts, total := 0, 0
		for _, ev := range whole {
			if ev.Kind != Frame {
				continue
			}
			parts, total = parts+1, total+len(ev.Body)
			if parts > 4 || total > 4000 {
				t.Fatalf("%d parts, %d bytes", parts, total)
			}
			if !ev.More {
				parts, total = 0, 0
			}
		}
	})
}

// FuzzCommand feeds the parsers of everything inside commands.
func FuzzCommand(f *testing.F) {
	for _, b := range [][]byte{
		AppendReady(nil, "REQ", "me")[2:], AppendPing(nil, 1, []byte("c"))[2:],
		AppendError(nil, "why")[2:], AppendSubscribe(nil, []byte("t"))[2:], {0}, {1}, nil,
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		name, data, err := ParseCommand(body)
		if err != nil {
			data = body
		} else if again := AppendCommand(nil, string(name), data); !bytes.HasSuffix(again, body) {
			t.Fatalf("%q became %q", body, again)
		}
		if m, err := ParseReady(data); err == nil && len(m.Identity) > 255 {
			t.Fatal("identity too long")
		}
		if _, context, err := ParsePing(data); err == nil && len(context) > maxPingContext {
			t.Fatal("context too long")
		}
		if pe, err := ParseError(data); err == nil && len(pe.Reason) > 3*255 {
			t.Fatal("reason too long")
		}
		ParseSubscription(data)
	})
}
