package doctor

import (
	"encoding/binary"
	"errors"
	"net"
)

// maxFrame bounds what a server may send at once, in bytes. The client library believes any length it is told.
const maxFrame = 1 << 20

var errFrame = errors.New("it sends a frame that is too large, so it may not be ZeroMQ")

const greetingSize = 64

// bounded is a connection that is cut when a frame of ZMTP on it is larger than maxFrame.
type bounded struct {
	net.Conn
	greeting int    // bytes of it that were read
	head     []byte // of the frame that begins
	body     uint64 // bytes of the frame that are still to come
}

func newBounded(c net.Conn) *bounded { return &bounded{Conn: c} }

// Read implements net.Conn.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if e := b.followFrames(p[:n]); e != nil {
		b.Close()
		return 0, e
	}
	return n, err
}

// followFrames keeps account of where frames begin and end.
func (b *bounded) followFrames(p []byte) error {
	if b.greeting < greetingSize {
		n := min(greetingSize-b.greeting, len(p))
		b.greeting += n
		p = p[n:]
	}
	for len(p) > 0 {
		if b.body > 0 {
			n := min(b.body, uint64(len(p)))
			b.body -= n
			p = p[n:]
			continue
		}
		b.head, p = append(b.head, p[0]), p[1:]
		const long = 1 << 1
		need := 2
		if b.head[0]&long != 0 {
			need = 9
		}
		if len(b.head) < need {
			continue
		}
		size := uint64(b.head[1])
		if need == 9 {
			size = binary.BigEndian.Uint64(b.head[1:])
		}
		if size > maxFrame {
			return errFrame
		}
		b.body, b.head = size, b.head[:0]
	}
	return nil
}
