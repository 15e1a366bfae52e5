package zmtp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// Names of the commands a NULL peer knows.
const (
	CmdReady     = "READY"
	CmdError     = "ERROR"
	CmdSubscribe = "SUBSCRIBE"
	CmdCancel    = "CANCEL"
	CmdPing      = "PING"
	CmdPong      = "PONG"
)

// maxPingContext is the most bytes a PING may ask to have echoed (RFC 37).
const maxPingContext = 16

// AppendCommand appends a command frame: name, then body.
func AppendCommand(dst []byte, name string, body []byte) []byte {
	dst = appendHeader(dst, flagCommand, 1+len(name)+len(body))
	dst = append(dst, byte(len(name)))
	dst = append(dst, name...)
	return append(dst, body...)
}

// AppendSubscribe appends a SUBSCRIBE command, the form of ZMTP 3.1.
func AppendSubscribe(dst, topic []byte) []byte { return AppendCommand(dst, CmdSubscribe, topic) }

// AppendCancel appends a CANCEL command, the form of ZMTP 3.1.
func AppendCancel(dst, topic []byte) []byte { return AppendCommand(dst, CmdCancel, topic) }

// AppendSubscription appends a subscription, or its end, as the data frame
// that ZMTP 3.0 uses.
func AppendSubscription(dst, topic []byte, subscribe bool) []byte {
	dst = appendHeader(dst, 0, 1+len(topic))
	var b byte
	if subscribe {
		b = 1
	}
	return append(append(dst, b), topic...)
}

// AppendPing appends a PING. ttl tells the peer after how long a silence it
// may give us up, in steps of 100 ms; zero means never. At most 16 bytes of
// context are sent.
func AppendPing(dst []byte, ttl time.Duration, context []byte) []byte {
	var body [2 + maxPingContext]byte
	binary.BigEndian.PutUint16(body[:], uint16(min(max(ttl/(100*time.Millisecond), 0), 0xffff)))
	n := copy(body[2:], context)
	return AppendCommand(dst, CmdPing, body[:2+n])
}

// AppendPong appends a PONG with the context of the PING it answers.
func AppendPong(dst, context []byte) []byte { return AppendCommand(dst, CmdPong, context) }

// AppendError appends an ERROR command; a reason is cut at 255 bytes.
func AppendError(dst []byte, reason string) []byte {
	reason = reason[:min(len(reason), 255)]
	return AppendCommand(dst, CmdError, append([]byte{byte(len(reason))}, reason...))
}

// ParseCommand splits the body of a command frame into name and data, both
// parts of body.
func ParseCommand(body []byte) (name, data []byte, err error) {
	if len(body) == 0 || body[0] == 0 || int(body[0]) > len(body)-1 {
		return nil, nil, fmt.Errorf("command name: %w", ErrCommand)
	}
	n := int(body[0])
	return body[1 : 1+n], body[1+n:], nil
}

// ParsePing reads the data of a PING: the silence the peer asks us to take as
// death (zero: none) and the context to echo, a part of data.
func ParsePing(data []byte) (ttl time.Duration, context []byte, err error) {
	if len(data) < 2 || len(data) > 2+maxPingContext {
		return 0, nil, fmt.Errorf("ping: %w", ErrCommand)
	}
	return time.Duration(binary.BigEndian.Uint16(data)) * 100 * time.Millisecond, data[2:], nil
}

// ParseError reads the data of an ERROR command.
func ParseError(data []byte) (*PeerError, error) {
	if len(data) == 0 || int(data[0]) != len(data)-1 {
		return nil, fmt.Errorf("error reason: %w", ErrCommand)
	}
	return &PeerError{Reason: string(bytes.ToValidUTF8(data[1:], []byte("?")))}, nil
}

// ParseSubscription reads a subscription that came as a data frame (ZMTP 3.0).
// ok is false when the frame is something else.
func ParseSubscription(frame []byte) (topic []byte, subscribe, ok bool) {
	if len(frame) == 0 || frame[0] > 1 {
		return nil, false, false
	}
	return frame[1:], frame[0] == 1, true
}
