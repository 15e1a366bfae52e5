package hostile

import (
	"encoding/binary"
	"net"

	"saltclusterd/sidecar/zmtp"
)

// carriage is how the frames of a request are sent; zero: as every minion does.
type carriage uint8

const (
	asUsual carriage = iota
	withHops
	withoutDelimiter
	inTwoParts
	manyEmptyParts
	twiceAtOnce
	withCommand
	announcedOnly
	halfAFrame
	carriages
)

var carriageNames = [carriages]string{
	"as usual", "with hops before it", "without a delimiter", "in two parts", "after empty parts", "twice at once",
	"after an unknown ZMTP command",
	"announced and not sent", "half a frame",
}

// String names it.
func (c carriage) String() string { return carriageNames[c] }

// answered says whether one may be waited for.
func (c carriage) answered() bool { return c != announcedOnly && c != halfAFrame }

// send carries a body over a connection that has shaken hands.
func (c carriage) send(z *zmtp.Client, raw net.Conn, body []byte) error {
	switch c {
	case withHops:
		return z.WriteMessage([]byte("hop"), []byte("hop"), nil, body)
	case withoutDelimiter:
		return z.WriteMessage(body)
	case inTwoParts:
		return z.WriteMessage(nil, body[:len(body)/2], body[len(body)/2:])
	case manyEmptyParts:
		return z.WriteMessage(nil, nil, nil, nil, body)
	case twiceAtOnce:
		_, err := raw.Write(zmtp.AppendMessage(zmtp.AppendMessage(nil, nil, body), nil, body))
		return err
	case withCommand:
		_, err := raw.Write(zmtp.AppendMessage([]byte("\x04\x05\x04EVIL"), nil, body))
		return err
	case announcedOnly:
		_, err := raw.Write(binary.BigEndian.AppendUint64([]byte{0x01, 0x00, 0x02}, 1<<40))
		return err
	case halfAFrame:
		whole := zmtp.AppendMessage(nil, nil, body)
		_, err := raw.Write(whole[:len(whole)/2])
		return err
	}
	return z.WriteMessage(nil, body)
}
