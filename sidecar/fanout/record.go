package fanout

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/late"
)

// kind tells what a record carries. Numbers are never reused; a receiver skips kinds it does not know.
type kind uint8

const (
	kindHeartbeat   kind = 1 // u64 stamp, u64 echo (see beat); nothing from nodes of before
	kindPublication kind = 2 // u16 n, n × (u16 length, topic), u8 flags, plaintext
	kindSignIn      kind = 3 // u64 epoch, minion id
	kindEpoch       kind = 4 // u64 epoch of the origin: that of the publications that follow; not part of the sequence
	kindStart       kind = 5 // u64 process, u32 age in milliseconds, minion id; in a list of all, not part of the sequence
	kindAge         kind = 6 // u32 milliseconds since the next record of the sequence was made; not part of it
	// u32 age in milliseconds, a publication from before the receiver's start; not part of the sequence
	kindEarlier kind = 7
)

const (
	headerSize = 1 + 8 + 8 + 4 // kind, sequence, clock, payload length; big endian
	// maxPayload bounds a record: a publication is a master's own message, and a megabyte is already rare.
	maxPayload = 64 << 20
	maxTopics  = 65535
	// maxMinionID bounds an id in a sign-in notice, because it is remembered while a rotation's window is open.
	maxMinionID = 255
	flagTopic   = 1 // the publication is a further copy for its topics only
)

var (
	errTooLong   = errors.New("record exceeds the limit")
	errMalformed = errors.New("malformed record")
)

// header is the fixed part of a record.
type header struct {
	kind  kind
	seq   uint64 // 0: not part of the sequence (heartbeats, epochs)
	clock hlc.Timestamp
}

// appendRecord appends a record with payload to dst.
func appendRecord(dst []byte, h header, payload []byte) []byte {
	dst = append(dst, byte(h.kind))
	dst = binary.BigEndian.AppendUint64(dst, h.seq)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.clock))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	return append(dst, payload...)
}

// readRecord reads one record. The payload grows as bytes arrive, never by an announced length alone.
func readRecord(r *bufio.Reader) (header, []byte, error) {
	var raw [headerSize]byte
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return header{}, nil, err
	}
	h := header{
		kind:  kind(raw[0]),
		seq:   binary.BigEndian.Uint64(raw[1:]),
		clock: hlc.Timestamp(binary.BigEndian.Uint64(raw[9:])),
	}
	n := binary.BigEndian.Uint32(raw[17:])
	if n > maxPayload {
		return header{}, nil, fmt.Errorf("%d bytes: %w", n, errTooLong)
	}
	if n <= uint32(r.Size()) {
		payload := make([]byte, n)
		_, err := io.ReadFull(r, payload)
		return h, payload, err
	}
	payload, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(payload) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return h, payload, err
}

// Publication is a master's publication in the clear, as it travels between nodes.
type Publication struct {
	Plain     []byte   // msgpack map as the publishing master made it, with that master's own serial
	Topics    []string // topics for subscribers that filter; nil means "broadcast"
	TopicOnly bool     // a further copy of one already delivered to those that do not filter
}

// appendPublication appends p's encoding to dst.
func appendPublication(dst []byte, p Publication) ([]byte, error) {
	if len(p.Topics) > maxTopics {
		return nil, fmt.Errorf("%d topics: %w", len(p.Topics), errTooLong)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(p.Topics)))
	for _, t := range p.Topics {
		if len(t) > 1<<16-1 {
			return nil, fmt.Errorf("topic of %d bytes: %w", len(t), errTooLong)
		}
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(t)))
		dst = append(dst, t...)
	}
	var flags byte
	if p.TopicOnly {
		flags |= flagTopic
	}
	dst = append(dst, flags)
	dst = append(dst, p.Plain...)
	if len(dst) > maxPayload {
		return nil, fmt.Errorf("publication of %d bytes: %w", len(p.Plain), errTooLong)
	}
	return dst, nil
}

// parsePublication is the inverse of appendPublication; Plain aliases b.
func parsePublication(b []byte) (Publication, error) {
	var p Publication
	if len(b) < 2 {
		return p, errMalformed
	}
	n := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	for range n {
		if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
			return Publication{}, errMalformed
		}
		end := 2 + int(binary.BigEndian.Uint16(b))
		p.Topics = append(p.Topics, string(b[2:end]))
		b = b[end:]
	}
	if len(b) < 1 {
		return Publication{}, errMalformed
	}
	p.TopicOnly = b[0]&flagTopic != 0
	p.Plain = b[1:]
	return p, nil
}

// appendSignIn and parseSignIn code a sign-in notice: id was answered with epoch.
func appendSignIn(dst []byte, id string, epoch uint64) []byte {
	return append(binary.BigEndian.AppendUint64(dst, epoch), id...)
}

func parseSignIn(b []byte) (id string, epoch uint64, err error) {
	if len(b) < 9 || len(b) > 8+maxMinionID {
		return "", 0, errMalformed
	}
	return string(b[8:]), binary.BigEndian.Uint64(b), nil
}

// appendEpoch appends the record that stands before a publication: the epoch that its origin sealed it under at least.
// Nodes of before skip it, and do not send it.
func appendEpoch(dst []byte, clock hlc.Timestamp, epoch uint64) []byte {
	return appendRecord(dst, header{kind: kindEpoch, clock: clock}, binary.BigEndian.AppendUint64(nil, epoch))
}

// appendStart and parseStart code the start of a minion's process, as now sees it.
func appendStart(dst []byte, s late.Start, now time.Time) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.Process))
	return append(appendAge(dst, now.Sub(s.At)), s.ID...)
}

func parseStart(b []byte, now time.Time) (late.Start, error) {
	if len(b) < 13 || len(b) > 12+maxMinionID {
		return late.Start{}, errMalformed
	}
	age, err := parseAge(b[8:12])
	return late.Start{ID: string(b[12:]), Process: late.Process(binary.BigEndian.Uint64(b)), At: now.Add(-age)}, err
}

// appendAge and parseAge code an age, of seven weeks at most.
func appendAge(dst []byte, age time.Duration) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(min(max(age.Milliseconds(), 0), math.MaxUint32)))
}

func parseAge(b []byte) (time.Duration, error) {
	if len(b) != 4 {
		return 0, errMalformed
	}
	return time.Duration(binary.BigEndian.Uint32(b)) * time.Millisecond, nil
}

// appendEarlier and parseEarlier code a publication from before the receiver's daemon was started, as it was at now.
func appendEarlier(dst []byte, p late.Publication, now time.Time) ([]byte, error) {
	age := now.Sub(p.At) + time.Millisecond // rounded up
	return appendPublication(appendAge(dst, age), Publication{Plain: p.Plain, Topics: p.Topics})
}

func parseEarlier(b []byte, now time.Time) (p Publication, at time.Time, err error) {
	if len(b) < 4 {
		return p, at, errMalformed
	}
	age, err := parseAge(b[:4])
	if err == nil {
		p, err = parsePublication(b[4:])
	}
	return p, now.Add(-age), err
}

// beat is what a heartbeat says: the sender's stamp, and the last one that it has heard from the receiver. By that the
// receiver knows up to what moment, of its own time, it has been told everything. 0: none.
type beat struct{ stamp, echo uint64 }

func appendBeat(dst []byte, b beat) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, b.stamp), b.echo)
}

// parseBeat returns nothing for the heartbeat of a node of before.
func parseBeat(b []byte) beat {
	if len(b) != 16 {
		return beat{}
	}
	return beat{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

func parseEpoch(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, errMalformed
	}
	return binary.BigEndian.Uint64(b), nil
}
