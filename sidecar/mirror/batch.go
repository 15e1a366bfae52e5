package mirror

import (
	"encoding/binary"
	"errors"

	"saltclusterd/sidecar/saltwire"
)

// A batch is magic with version, the sender's run (u64), the number of the first event (u64), then events: tag and
// data, each with its length before it (u32). All numbers are big-endian.
const batchMagic = "SCDevt\x00\x01"

const (
	headSize    = len(batchMagic) + 16
	batchEvents = 1024
	batchBytes  = 256 << 10 // when a batch has enough; one event may be larger
	// MaxBatch bounds a batch in bytes.
	MaxBatch = maxEvent + batchBytes + 4<<10
	maxEvent = 1 << 20 // Salt's max_event_size
)

var errBatch = errors.New("mirror: malformed batch")

// event is one event of a bus.
type event struct {
	tag  string
	data []byte // a msgpack map
}

func (e event) byteSize() int { return len(e.tag) + len(e.data) }

// batch is consecutive events of one run of a sender.
type batch struct {
	run, first uint64
	events     []event
}

func (b batch) encodeBatch() []byte {
	out := append(make([]byte, 0, batchBytes), batchMagic...)
	out = binary.BigEndian.AppendUint64(out, b.run)
	out = binary.BigEndian.AppendUint64(out, b.first)
	for _, e := range b.events {
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(e.tag))), e.tag...)
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(e.data))), e.data...)
	}
	return out
}

// parseBatch is the reverse. Data are copies of what they come from, and msgpack maps.
func parseBatch(body []byte) (batch, error) {
	if len(body) < headSize || string(body[:len(batchMagic)]) != batchMagic {
		return batch{}, errBatch
	}
	b := batch{
		run:   binary.BigEndian.Uint64(body[len(batchMagic):]),
		first: binary.BigEndian.Uint64(body[len(batchMagic)+8:]),
	}
	for body = body[headSize:]; len(body) > 0; {
		var tag, data []byte
		var ok bool
		if tag, body, ok = readField(body, maxTag); !ok || len(b.events) == batchEvents {
			return batch{}, errBatch
		}
		if data, body, ok = readField(body, maxEvent); !ok {
			return batch{}, errBatch
		}
		if err := saltwire.WalkMap(data, func(_, _ []byte) error { return nil }); err != nil {
			return batch{}, errBatch
		}
		b.events = append(b.events, event{string(tag), append([]byte(nil), data...)})
	}
	return b, nil
}

func readField(b []byte, limit uint32) (value, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if n > limit || int(n) > len(b)-4 {
		return nil, nil, false
	}
	return b[4 : 4+n], b[4+n:], true
}
