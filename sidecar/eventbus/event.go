package eventbus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltwire"
)

// ErrEvent means that bytes from the event bus are not what a master sends.
var ErrEvent = errors.New("eventbus: malformed event")

// tagEnd separates an event's tag from its data (salt/utils/event.py:TAGEND).
const tagEnd = "\n\n"

// framing is how messages follow each other on a bus socket.
type framing uint8

const (
	unknownFraming framing = iota
	prefixed               // u32 big-endian length, then the msgpack map
	bare                   // the msgpack maps alone
)

// detectFraming looks at the first byte of a stream: 0x82 begins a bare map of two; a length's first byte is 0, for
// no event reaches 16 MiB.
func detectFraming(first byte) (framing, error) {
	switch first {
	case 0x82:
		return bare, nil
	case 0x00:
		return prefixed, nil
	}
	return unknownFraming, fmt.Errorf("%w: stream begins with 0x%02x", ErrEvent, first)
}

// formatStamp is an event's _stamp: Python's isoformat() of the time in UTC, which leaves a zero fraction out. 3006 and
// 3007 take utcnow(), which does not know its zone; 3008 takes now(timezone.utc), which tells it (salt/utils/event.py).
func formatStamp(t time.Time, major int) string {
	layout := "2006-01-02T15:04:05.000000"
	if t = t.UTC(); t.Nanosecond()/1000 == 0 {
		layout = "2006-01-02T15:04:05"
	}
	if major >= 3008 {
		return t.Format(layout) + "+00:00"
	}
	return t.Format(layout)
}

// appendEventData encodes an event's data as on the bus (bin types), _stamp added when missing.
func appendEventData(dst []byte, data map[string]any, now time.Time, major int) ([]byte, error) {
	if _, ok := data["_stamp"]; !ok {
		with := make(map[string]any, len(data)+1)
		for k, v := range data {
			with[k] = v
		}
		with["_stamp"] = formatStamp(now, major)
		data = with
	}
	return saltwire.AppendAny(dst, data, saltwire.Disk)
}

// appendFrame writes {"head": {}, "body": tag\n\ndata} in the given framing.
func appendFrame(dst []byte, f framing, tag string, data []byte) []byte {
	body := len(tag) + len(tagEnd) + len(data)
	if f != bare {
		dst = binary.BigEndian.AppendUint32(dst, uint32(frameOverhead(body)+body))
	}
	dst = append(dst, "\x82\xa4head\x80\xa4body"...)
	dst = appendBinHeader(dst, body)
	dst = append(dst, tag...)
	dst = append(dst, tagEnd...)
	return append(dst, data...)
}

// frameSize is how long appendFrame's frame is.
func frameSize(f framing, e queuedEvent) int {
	body := len(e.tag) + len(tagEnd) + len(e.data)
	size := frameOverhead(body) + body
	if f != bare {
		size += 4
	}
	return size
}

func frameOverhead(body int) int {
	return len("\x82\xa4head\x80\xa4body") + len(appendBinHeader(nil, body))
}

func appendBinHeader(dst []byte, n int) []byte {
	switch {
	case n <= 0xff:
		return append(dst, 0xc4, byte(n))
	case n <= 0xffff:
		return binary.BigEndian.AppendUint16(append(dst, 0xc5), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 0xc6), uint32(n))
}

// cutFrame takes the first message off buf and returns its body, which aliases buf. n is 0 when buf ends before it
// does.
func cutFrame(buf []byte, f framing, limit int64) (body []byte, n int, err error) {
	if f == prefixed {
		if len(buf) < 4 {
			return nil, 0, nil
		}
		size := int64(binary.BigEndian.Uint32(buf))
		if size > limit {
			return nil, 0, fmt.Errorf("%w: %d bytes announced", ErrEvent, size)
		}
		if int64(len(buf)) < 4+size {
			return nil, 0, nil
		}
		body, used, err := frameBody(buf[4 : 4+size])
		if err == nil && int64(used) != size {
			err = fmt.Errorf("%w: %d bytes in a frame of %d", ErrEvent, used, size)
		}
		if errors.Is(err, msgp.ErrShortBytes) {
			err = fmt.Errorf("%w: frame too short", ErrEvent)
		}
		return body, 4 + int(size), err
	}
	body, n, err = frameBody(buf)
	if errors.Is(err, msgp.ErrShortBytes) {
		if int64(len(buf)) > limit {
			return nil, 0, fmt.Errorf("%w: no end after %d bytes", ErrEvent, len(buf))
		}
		return nil, 0, nil
	}
	return body, n, err
}

// frameBody reads one frame map; msgp.ErrShortBytes when it is cut off.
func frameBody(buf []byte) (body []byte, n int, err error) {
	pairs, rest, err := msgp.ReadMapHeaderBytes(buf)
	if err != nil {
		return nil, 0, eventError(err)
	}
	if pairs > 16 {
		return nil, 0, fmt.Errorf("%w: frame of %d entries", ErrEvent, pairs)
	}
	for range pairs {
		var key []byte
		if key, rest, err = msgp.ReadMapKeyZC(rest); err != nil {
			return nil, 0, eventError(err)
		}
		if string(key) != "body" {
			if rest, err = msgp.Skip(rest); err != nil {
				return nil, 0, eventError(err)
			}
			continue
		}
		if body, rest, err = readBytes(rest); err != nil {
			return nil, 0, eventError(err)
		}
	}
	if body == nil {
		return nil, 0, fmt.Errorf("%w: frame without body", ErrEvent)
	}
	return body, len(buf) - len(rest), nil
}

func readBytes(b []byte) (v, rest []byte, err error) {
	if msgp.NextType(b) == msgp.StrType {
		return msgp.ReadStringZC(b)
	}
	return msgp.ReadBytesZC(b)
}

func eventError(err error) error {
	if errors.Is(err, msgp.ErrShortBytes) {
		return msgp.ErrShortBytes
	}
	return fmt.Errorf("%w: %w", ErrEvent, err)
}

// splitEvent cuts an event into its tag and its data.
func splitEvent(body []byte) (tag string, data []byte, err error) {
	t, data, ok := bytes.Cut(body, []byte(tagEnd))
	if !ok || len(t) == 0 {
		return "", nil, fmt.Errorf("%w: no tag", ErrEvent)
	}
	return string(t), data, nil
}
