package proxyproto

import (
	"encoding/binary"
	"net/netip"
)

// head2 is the fixed part of version 2: signature, version and command, family and protocol, length of the rest.
const head2 = 16

var signature2 = []byte("\r\n\r\n\x00\r\nQUIT\n")

// Version with command, and family with protocol, as they are written.
const (
	local2  = 0x20
	proxy2  = 0x21
	unspec2 = 0x00
	tcp4    = 0x11
	tcp6    = 0x21
	unix2   = 0x31

	size4 = 12 // two addresses and two ports
	size6 = 36
)

func parse2(b []byte) (Header, int, error) {
	if len(b) < head2 {
		return Header{}, 0, ErrShort
	}
	command, family := b[12], b[13]
	n := head2 + int(binary.BigEndian.Uint16(b[14:]))
	switch {
	case command != local2 && command != proxy2:
		return Header{}, 0, ErrMalformed
	case n > MaxHeader:
		return Header{}, 0, ErrTooLong
	case len(b) < n:
		return Header{}, 0, ErrShort
	}
	h := Header{Version: 2}
	if command == local2 {
		return h, n, nil
	}
	rest := b[head2:n]
	switch {
	case family == unspec2, family == unix2:
	case family == tcp4 && len(rest) >= size4:
		a := netip.AddrFrom4([4]byte(rest[:4]))
		h.Source = netip.AddrPortFrom(a, binary.BigEndian.Uint16(rest[8:]))
	case family == tcp6 && len(rest) >= size6:
		a := netip.AddrFrom16([16]byte(rest[:16])).Unmap()
		h.Source = netip.AddrPortFrom(a, binary.BigEndian.Uint16(rest[32:]))
	default:
		return Header{}, 0, ErrMalformed
	}
	return h, n, nil
}
