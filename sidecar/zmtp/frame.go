package zmtp

import "encoding/binary"

// Bits of a frame's first byte; the other five must be zero.
const (
	flagMore    = 0x01
	flagLong    = 0x02
	flagCommand = 0x04
	flagKnown   = flagMore | flagLong | flagCommand
)

// MaxFrameHeader is the most bytes a frame header takes: flags and a 64-bit size.
const MaxFrameHeader = 9

func appendHeader(dst []byte, flags byte, size int) []byte {
	if size > 255 {
		dst = append(dst, flags|flagLong)
		return binary.BigEndian.AppendUint64(dst, uint64(size))
	}
	return append(dst, flags, byte(size))
}

// AppendFrameHeader appends the header of a data frame whose body of size
// bytes the caller sends itself.
func AppendFrameHeader(dst []byte, size int, more bool) []byte {
	var flags byte
	if more {
		flags = flagMore
	}
	return appendHeader(dst, flags, size)
}

// AppendFrame appends one data frame. more says that another frame of the
// same message follows.
func AppendFrame(dst, body []byte, more bool) []byte {
	return append(AppendFrameHeader(dst, len(body), more), body...)
}

// AppendMessage appends a whole message, one frame per part.
func AppendMessage(dst []byte, parts ...[]byte) []byte {
	for i, p := range parts {
		dst = AppendFrame(dst, p, i < len(parts)-1)
	}
	return dst
}

// MessageSize is the number of bytes AppendMessage appends.
func MessageSize(parts ...[]byte) int {
	n := 0
	for _, p := range parts {
		n += len(p) + 2
		if len(p) > 255 {
			n += 7
		}
	}
	return n
}
