package proxyproto

import (
	"bytes"
	"errors"
	"net/netip"
)

// MaxHeader bounds a header. Version 1 needs at most 107 bytes; version 2 has extensions (TLVs), of which load
// balancers send some hundred bytes.
const MaxHeader = 4 << 10

// What Parse fails with.
var (
	// ErrShort: b is the beginning of what may become a header.
	ErrShort = errors.New("proxy header is not complete")
	// ErrMissing: the connection does not begin with a header.
	ErrMissing = errors.New("no proxy header")
	// ErrMalformed: it begins like one and is none.
	ErrMalformed = errors.New("malformed proxy header")
	// ErrTooLong: the header is longer than MaxHeader.
	ErrTooLong = errors.New("proxy header too long")
)

// Header is what the load balancer said.
type Header struct {
	Version int
	// Source is the true peer; invalid when the load balancer speaks for itself (a health check) or does not know.
	Source netip.AddrPort
}

// Parse reads the header that b begins with and returns its length.
func Parse(b []byte) (Header, int, error) {
	switch {
	case startsLike(b, signature2):
		return parse2(b)
	case startsLike(b, prefix1):
		return parse1(b)
	}
	return Header{}, 0, ErrMissing
}

// startsLike says whether b begins with start, or may once more bytes have come.
func startsLike(b, start []byte) bool {
	n := min(len(b), len(start))
	return bytes.Equal(b[:n], start[:n])
}
