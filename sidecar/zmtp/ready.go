package zmtp

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Metadata is what a peer says of itself in READY. Other properties than
// these two are read over.
type Metadata struct {
	SocketType string
	Identity   string // at most 255 bytes; arbitrary ones, not text
}

// AppendReady appends the READY command of a socket of the given type. Like
// libzmq it names an identity for the types which have one, even an empty one.
func AppendReady(dst []byte, socketType, identity string) []byte {
	body := appendProperty(nil, "Socket-Type", socketType)
	switch socketType {
	case "REQ", "DEALER", "ROUTER":
		body = appendProperty(body, "Identity", identity)
	}
	return AppendCommand(dst, CmdReady, body)
}

func appendProperty(dst []byte, name, value string) []byte {
	dst = append(dst, byte(len(name)))
	dst = append(dst, name...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}

// ParseReady reads the data of a READY command.
func ParseReady(data []byte) (m Metadata, err error) {
	for len(data) > 0 {
		var name, value []byte
		if name, value, data, err = cutProperty(data); err != nil {
			return Metadata{}, fmt.Errorf("ready: %w", err)
		}
		switch { // names are compared without case (RFC 23)
		case strings.EqualFold(string(name), "Socket-Type"):
			m.SocketType = string(value)
		case strings.EqualFold(string(name), "Identity"):
			if len(value) > 255 {
				return Metadata{}, fmt.Errorf("ready: identity of %d bytes: %w", len(value), ErrCommand)
			}
			m.Identity = string(value)
		}
	}
	return m, nil
}

func cutProperty(data []byte) (name, value, rest []byte, err error) {
	n := int(data[0])
	if n == 0 || len(data) < 1+n+4 {
		return nil, nil, nil, ErrCommand
	}
	name, data = data[1:1+n], data[1+n:]
	size := binary.BigEndian.Uint32(data)
	if data = data[4:]; uint64(size) > uint64(len(data)) {
		return nil, nil, nil, ErrCommand
	}
	return name, data[:size], data[size:], nil
}
