package spool

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A frame is a record in its segment: magic, length of the body, sequence number, start of the group within the
// segment, checksum, body. Numbers are big-endian. The magic is half of the segment's salt, so that a search for it
// cannot be led astray by what is in the bodies.
const frameSize = 4 + 4 + 8 + 8 + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type frame struct {
	seq, group uint64
	body       []byte
}

// diskSize is what the frame takes in the segment.
func (f *frame) diskSize() int64 { return frameSize + int64(len(f.body)) }

func magicOf(salt uint64) (m [4]byte) {
	binary.BigEndian.PutUint32(m[:], uint32(salt>>32))
	return m
}

func appendFrame(dst []byte, salt, seq, group uint64, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(salt>>32))
	at := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)))
	dst = binary.BigEndian.AppendUint64(dst, seq)
	dst = binary.BigEndian.AppendUint64(dst, group)
	dst = binary.BigEndian.AppendUint32(dst, frameChecksum(salt, dst[at:], body))
	return append(dst, body...)
}

func frameChecksum(salt uint64, head, body []byte) uint32 {
	var s [8]byte
	binary.BigEndian.PutUint64(s[:], salt)
	sum := crc32.Update(0, castagnoli, s[:])
	sum = crc32.Update(sum, castagnoli, head)
	return crc32.Update(sum, castagnoli, body)
}

// frameLength is the size of the frame that b seems to start with, which may be more than b holds. b has frameSize
// bytes at least.
func frameLength(b []byte, salt uint64) (int64, bool) {
	return frameSize + int64(binary.BigEndian.Uint32(b[4:])), binary.BigEndian.Uint32(b) == uint32(salt>>32)
}

// parseFrame reads the frame at the start of b; the body aliases b. ok is false when it is not whole and right.
func parseFrame(b []byte, salt uint64) (f frame, ok bool) {
	if len(b) < frameSize {
		return frame{}, false
	}
	n, ok := frameLength(b, salt)
	if !ok || int64(len(b)) < n {
		return frame{}, false
	}
	head := b[4 : frameSize-4]
	f = frame{seq: binary.BigEndian.Uint64(head[4:]), group: binary.BigEndian.Uint64(head[12:]), body: b[frameSize:n:n]}
	return f, frameChecksum(salt, head, f.body) == binary.BigEndian.Uint32(b[frameSize-4:])
}

// findFrame returns where the next good frame in b starts whose number is after seq; -1 when there is none.
func findFrame(b []byte, salt, seq uint64) int {
	magic := magicOf(salt)
	for at := 0; ; at++ {
		n := bytes.Index(b[at:], magic[:])
		if n < 0 {
			return -1
		}
		at += n
		if f, ok := parseFrame(b[at:], salt); ok && f.seq > seq {
			return at
		}
	}
}
