package trace

import (
	"context"
	"encoding/hex"
)

// Header is where a relayed request says which trace it belongs to (https://www.w3.org/TR/trace-context/).
const Header = "Traceparent"

// Parent is the span, on another node, that a request here belongs to. The zero Parent is none.
type Parent struct {
	trace   [16]byte
	span    [8]byte
	sampled bool
}

// Sampled says whether there is a parent, and whoever began the trace wants it to be told of.
func (p Parent) Sampled() bool { return p.sampled }

// headerSize is that of a traceparent of version 00: version, trace, span and flags in hexadecimal digits, with dashes
// between.
const headerSize = 2 + 1 + 32 + 1 + 16 + 1 + 2

// ParseParent reads a traceparent; what is none, or belongs to nothing, is the zero Parent.
func ParseParent(header string) (p Parent) {
	if len(header) < headerSize || header[2] != '-' || header[35] != '-' || header[52] != '-' {
		return Parent{}
	}
	var raw [headerSize]byte
	copy(raw[:], header)
	var version, flags [1]byte
	for _, part := range []struct{ to, from []byte }{
		{version[:], raw[:2]}, {p.trace[:], raw[3:35]}, {p.span[:], raw[36:52]}, {flags[:], raw[53:55]},
	} {
		if !lowerHex(part.from) {
			return Parent{}
		}
		if _, err := hex.Decode(part.to, part.from); err != nil {
			return Parent{}
		}
	}
	// A later version may say more behind it; 255 is none.
	if version[0] == 0xff || version[0] == 0 && len(header) != headerSize || len(header) > headerSize &&
		header[headerSize] != '-' {
		return Parent{}
	}
	if p.trace == [16]byte{} || p.span == [8]byte{} {
		return Parent{}
	}
	p.sampled = flags[0]&1 != 0
	return p
}

// lowerHex: the standard allows no capitals.
func lowerHex(digits []byte) bool {
	for _, c := range digits {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func (p Parent) traceparent() string {
	raw := append(make([]byte, 0, headerSize), "00-"...)
	raw = append(hex.AppendEncode(raw, p.trace[:]), '-')
	raw = append(hex.AppendEncode(raw, p.span[:]), "-01"...)
	return string(raw)
}

type (
	requestKey struct{}
	parentKey  struct{}
)

// With returns a context for what is done for the request elsewhere; for a nil one that is ctx itself.
func (r *Request) With(ctx context.Context) context.Context {
	if r == nil {
		return ctx
	}
	return context.WithValue(ctx, requestKey{}, r)
}

// Outgoing is the header for a call that is made under ctx, empty when nothing is traced.
func Outgoing(ctx context.Context) string {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r.traceparent()
}

// Incoming returns a context for a request that came with this header.
func Incoming(ctx context.Context, header string) context.Context {
	if header == "" {
		return ctx
	}
	p := ParseParent(header)
	if !p.sampled {
		return ctx
	}
	return context.WithValue(ctx, parentKey{}, p)
}

// ParentOf is what Incoming has found.
func ParentOf(ctx context.Context) Parent {
	p, _ := ctx.Value(parentKey{}).(Parent)
	return p
}
