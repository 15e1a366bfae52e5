package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// v2 writes a header of version 2.
func v2(command, family byte, rest ...byte) []byte {
	b := append([]byte(nil), signature2...)
	b = append(b, command, family)
	b = binary.BigEndian.AppendUint16(b, uint16(len(rest)))
	return append(b, rest...)
}

func addrs4(tlv ...byte) []byte {
	return append([]byte{192, 0, 2, 7, 10, 0, 0, 1, 0x30, 0x39, 0x11, 0x9a}, tlv...)
}

func addrs6() []byte {
	src, dst := netip.MustParseAddr("2001:db8::7").As16(), netip.MustParseAddr("2001:db8::1").As16()
	return append(append(src[:], dst[:]...), 0x30, 0x39, 0x11, 0x9a)
}

func TestParse(t *testing.T) {
	mapped := netip.MustParseAddr("::ffff:192.0.2.7").As16()
	for _, tt := range []struct {
		name, in string
		source   string // empty: none
		err      error
	}{
		{"tcp4", "PROXY TCP4 192.0.2.7 10.0.0.1 12345 4506\r\n", "192.0.2.7:12345", nil},
		{"tcp6", "PROXY TCP6 2001:db8::7 2001:db8::1 12345 4506\r\n", "[2001:db8::7]:12345", nil},
		{"tcp6 that is mapped", "PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n", "192.0.2.7:1", nil},
		{"unknown", "PROXY UNKNOWN\r\n", "", nil},
		{"unknown with more", "PROXY UNKNOWN ffff:f...f 1 2 3\r\n", "", nil},
		{"v2 tcp4", string(v2(proxy2, tcp4, addrs4()...)), "192.0.2.7:12345", nil},
		{"v2 tcp4 with extensions", string(v2(proxy2, tcp4, addrs4(3, 0, 4, 1, 2, 3, 4)...)), "192.0.2.7:12345", nil},
		{"v2 tcp6", string(v2(proxy2, tcp6, addrs6()...)), "[2001:db8::7]:12345", nil},
		{"v2 tcp6 that is mapped", string(v2(proxy2, tcp6, append(append(mapped[:], mapped[:]...), 0, 1, 0, 2)...)),
			"192.0.2.7:1", nil},
		{"v2 local", string(v2(local2, unspec2)), "", nil},
		{"v2 local with addresses", string(v2(local2, tcp4, addrs4()...)), "", nil},
		{"v2 unspecified", string(v2(proxy2, unspec2, 1, 2, 3)), "", nil},
		{"v2 unix", string(v2(proxy2, unix2, make([]byte, 216)...)), "", nil},

		{"nothing", "", "", ErrShort},
		{"a part of v1", "PROXY TC", "", ErrShort},
		{"a part of the signature", string(signature2[:5]), "", ErrShort},
		{"v2 without its addresses", string(v2(proxy2, tcp4, addrs4()...)[:20]), "", ErrShort},
		{"zmtp", "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f", "", ErrMissing},
		{"http", "GET / HTTP/1.0\r\n\r\n", "", ErrMissing},
		{"no end", "PROXY " + strings.Repeat("x", 200), "", ErrMalformed},
		{"too long an end", "PROXY UNKNOWN " + strings.Repeat("x", 100) + "\r\n", "", ErrMalformed},
		{"udp", "PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n", "", ErrMalformed},
		{"few fields", "PROXY TCP4 192.0.2.7 10.0.0.1 1\r\n", "", ErrMalformed},
		{"two blanks", "PROXY TCP4  192.0.2.7 10.0.0.1 1 2\r\n", "", ErrMalformed},
		{"other family", "PROXY TCP4 ::1 ::1 1 2\r\n", "", ErrMalformed},
		{"a zone", "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", "", ErrMalformed},
		{"a name", "PROXY TCP4 localhost 10.0.0.1 1 2\r\n", "", ErrMalformed},
		{"a leading zero", "PROXY TCP4 192.0.2.7 10.0.0.1 01 2\r\n", "", ErrMalformed},
		{"a sign", "PROXY TCP4 192.0.2.7 10.0.0.1 +1 2\r\n", "", ErrMalformed},
		{"a big port", "PROXY TCP4 192.0.2.7 10.0.0.1 1 65536\r\n", "", ErrMalformed},
		{"v2 of version 1", string(v2(0x11, tcp4, addrs4()...)), "", ErrMalformed},
		{"v2 unknown command", string(v2(0x22, tcp4, addrs4()...)), "", ErrMalformed},
		{"v2 udp", string(v2(proxy2, 0x12, addrs4()...)), "", ErrMalformed},
		{"v2 few bytes", string(v2(proxy2, tcp4, 1, 2, 3)), "", ErrMalformed},
		{"v2 few bytes for tcp6", string(v2(proxy2, tcp6, addrs4()...)), "", ErrMalformed},
		{"v2 too long", string(v2(proxy2, tcp4, make([]byte, MaxHeader)...)), "", ErrTooLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := []byte(tt.in)
			if tt.err == nil {
				in = append(in, "\xff the peer's own"...)
			}
			h, n, err := Parse(in)
			if !errors.Is(err, tt.err) {
				t.Fatalf("%v, want %v", err, tt.err)
			}
			if err != nil {
				return
			}
			source := ""
			if h.Source.IsValid() {
				source = h.Source.String()
			}
			if source != tt.source || n != len(tt.in) {
				t.Errorf("%s after %d bytes, want %s after %d", source, n, tt.source, len(tt.in))
			}
			for cut := range n { // however it arrives
				if _, _, err := Parse(in[:cut]); !errors.Is(err, ErrShort) {
					t.Fatalf("the first %d bytes: %v", cut, err)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"PROXY TCP4 192.0.2.7 10.0.0.1 12345 4506\r\n", "PROXY TCP6 2001:db8::7 2001:db8::1 12345 4506\r\n\xff",
		"PROXY UNKNOWN\r\n",
		"PROXY TCP4 192.0.2.7 10.0.0.1 01 2\r\n", "PROX", "\xff\x00", string(signature2),
		string(v2(proxy2, tcp4, addrs4(3, 0, 4, 1, 2, 3, 4)...)), string(v2(proxy2, tcp6, addrs6()...)),
		string(v2(local2, unspec2)),
		string(v2(proxy2, unix2, make([]byte, 216)...)), string(v2(0x22, 0x77, 1, 2, 3)),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := Parse(b)
		if err != nil {
			if n != 0 || h != (Header{}) {
				t.Fatalf("%v with %+v, %d", err, h, n)
			}
			if errors.Is(err, ErrShort) && len(b) >= MaxHeader {
				t.Fatalf("asks for more than %d bytes", MaxHeader)
			}
			return
		}
		if n <= 0 || n > len(b) || n > MaxHeader || h.Source.IsValid() && h.Source.Addr().Is4In6() {
			t.Fatalf("%+v, %d of %d", h, n, len(b))
		}
		again, m, err := Parse(append(bytes.Clone(b[:n]), "more"...)) // what follows does not matter
		if err != nil || m != n || again != h {
			t.Fatalf("%+v, %d, %v instead of %+v, %d", again, m, err, h, n)
		}
	})
}
