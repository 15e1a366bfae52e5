package wsframe

import (
	"encoding/binary"

	"saltclusterd/sidecar/saltwire"

	"github.com/gobwas/ws"
)

// MaxHeader is how many bytes AppendHeader appends at most.
const MaxHeader = 10

// final is set in the first byte of a frame that ends a message.
const final = 0x80

// AppendHeader appends what comes before a binary message of so many bytes.
func AppendHeader(dst []byte, size int) []byte { return appendHeader(dst, ws.OpBinary, size) }

func appendHeader(dst []byte, op ws.OpCode, size int) []byte {
	dst = append(dst, final|byte(op))
	switch {
	case size < 126:
		return append(dst, byte(size))
	case size <= 0xffff:
		return binary.BigEndian.AppendUint16(append(dst, 126), uint16(size))
	}
	return binary.BigEndian.AppendUint64(append(dst, 127), uint64(size))
}

// AppendPublication appends the message of a publication, whose payload is a msgpack map.
func AppendPublication(dst, payload []byte) []byte {
	return saltwire.AppendBin(AppendHeader(dst, binSize(payload)), payload)
}

// PublicationSize is how many bytes AppendPublication appends at most.
func PublicationSize(payload []byte) int { return MaxHeader + 5 + len(payload) }

// binSize is how many bytes payload has as msgpack bytes.
func binSize(payload []byte) int {
	switch n := len(payload); {
	case n <= 0xff:
		return 2 + n
	case n <= 0xffff:
		return 3 + n
	default:
		return 5 + n
	}
}

// AppendPing appends a PING.
func AppendPing(dst []byte) []byte { return appendHeader(dst, ws.OpPing, 0) }

// AppendPong appends the answer to a PING that carries data.
func AppendPong(dst, data []byte) []byte {
	return append(appendHeader(dst, ws.OpPong, len(data)), data...)
}

// AppendClose appends the announcement that the connection ends in order.
func AppendClose(dst []byte) []byte {
	body := ws.NewCloseFrameBody(ws.StatusGoingAway, "")
	return append(appendHeader(dst, ws.OpClose, len(body)), body...)
}
