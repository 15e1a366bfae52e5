package proxyproto

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
)

// max1 is the longest line of version 1, CRLF included.
const max1 = 107

var prefix1 = []byte("PROXY ")

// parse1 reads "PROXY TCP4 <source> <destination> <source port> <destination port>\r\n", or TCP6, or UNKNOWN and
// anything.
func parse1(b []byte) (Header, int, error) {
	end := bytes.Index(b[:min(len(b), max1)], []byte("\r\n"))
	switch {
	case end < 0 && len(b) >= max1:
		return Header{}, 0, ErrMalformed
	case end < 0:
		return Header{}, 0, ErrShort
	}
	h, n := Header{Version: 1}, end+2
	f := strings.Split(string(b[len(prefix1):end]), " ")
	if f[0] == "UNKNOWN" {
		return h, n, nil
	}
	if len(f) != 5 || f[0] != "TCP4" && f[0] != "TCP6" {
		return Header{}, 0, ErrMalformed
	}
	source, ok := address1(f[0], f[1], f[3])
	if _, dst := address1(f[0], f[2], f[4]); !ok || !dst {
		return Header{}, 0, ErrMalformed
	}
	h.Source = source
	return h, n, nil
}

func address1(family, addr, port string) (netip.AddrPort, bool) {
	a, err := netip.ParseAddr(addr)
	if err != nil || a.Zone() != "" || a.Is4() != (family == "TCP4") {
		return netip.AddrPort{}, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || strconv.FormatUint(n, 10) != port { // no sign, no leading zero
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), true
}
