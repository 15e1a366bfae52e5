package jobs

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A body is the magic, a version, a kind, and what belongs to it. Numbers are varints or big endian, texts and blobs
// have a uvarint length in front.
const (
	magic       = "scjb"
	wireVersion = 1

	kindDigest  = 1 // sums of jobs; answered with those to send
	kindItems   = 2 // what there is of a job; answered with the items to send
	kindRecords = 3
	kindFind    = 4 // a jid; answered with kindRecords
	kindList    = 5 // a number; answered with a list

	isAhead = 1 // in the place of a return's time
)

// Limits of a body, which bound what a receiver allocates.
const (
	MaxBody    = maxFile + 8<<20
	maxDigest  = 2_000
	maxItems   = 1_000_000
	maxRecords = 1 << 16
)

// Path is where the handler belongs.
const Path = "/v1/jobs"

// errWire says that a body cannot be read.
var errWire = errors.New("malformed jobs")

// digested is what a digest says of a job.
type digested struct {
	jid string
	at  int64
	sum uint64
}

type digest struct {
	answer bool // the sender would like the receiver's comparison too
	jobs   []digested
}

// listed is a job with its items.
type listed struct {
	jid   string
	at    int64
	items []item
}

// message is what a body holds; kind says which field counts.
type message struct {
	kind    byte
	digest  digest
	items   listed
	records []*record
	jid     string
	count   int
}

func appendHeader(dst []byte, kind byte) []byte {
	return append(append(dst, magic...), wireVersion, kind)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendBlob(dst, b []byte) []byte { return append(binary.AppendUvarint(dst, uint64(len(b))), b...) }

func encodeDigest(d digest) []byte {
	out := append(appendHeader(nil, kindDigest), flag(d.answer, 1))
	out = binary.AppendUvarint(out, uint64(len(d.jobs)))
	for _, j := range d.jobs {
		out = binary.AppendVarint(appendText(out, j.jid), j.at)
		out = binary.BigEndian.AppendUint64(out, j.sum)
	}
	return out
}

func flag(on bool, bit byte) byte {
	if on {
		return bit
	}
	return 0
}

func encodeItems(l listed) []byte {
	out := binary.AppendVarint(appendText(appendHeader(nil, kindItems), l.jid), l.at)
	out = binary.AppendUvarint(out, uint64(len(l.items)))
	for _, it := range l.items {
		out = appendText(append(out, flag(it.ret, 1)), it.name)
		if !it.ret {
			out = binary.AppendVarint(append(out, it.rank), it.mtime)
			out = binary.AppendUvarint(out, uint64(it.size))
		}
	}
	return out
}

func encodeRecords(rs []*record) []byte {
	n := 64
	for _, r := range rs {
		n += r.weight()
	}
	out := appendHeader(make([]byte, 0, n), kindRecords)
	out = binary.AppendUvarint(out, uint64(len(rs)))
	for _, r := range rs {
		out = binary.AppendVarint(appendText(out, r.jid), r.at)
		out = appendText(append(out, flag(r.ret, 1)|flag(r.hasO, 2)), r.name)
		mtime := r.mtime
		if r.ret { // of which nodes that do not know of ahead read no time
			mtime = int64(flag(r.ahead, isAhead))
		}
		out = appendBlob(binary.AppendVarint(out, mtime), r.data)
		if r.hasO {
			out = appendBlob(out, r.out)
		}
	}
	return out
}

func encodeFind(jid string) []byte { return appendText(appendHeader(nil, kindFind), jid) }

func encodeList(n int) []byte { return binary.AppendUvarint(appendHeader(nil, kindList), uint64(n)) }

// decode reads a body. What it returns points into b.
func decode(b []byte) (m message, err error) {
	if len(b) < len(magic)+2 || string(b[:len(magic)]) != magic {
		return m, errWire
	}
	if v := b[len(magic)]; v != wireVersion {
		return m, fmt.Errorf("%w: version %d", errWire, v)
	}
	m.kind = b[len(magic)+1]
	r := &reader{b: b[len(magic)+2:]}
	switch m.kind {
	case kindDigest:
		m.digest = r.digest()
	case kindItems:
		m.items = r.listed()
	case kindRecords:
		m.records = r.records()
	case kindFind:
		m.jid = r.jid()
	case kindList:
		m.count = int(r.count(maxList))
	default:
		return m, fmt.Errorf("%w: kind %d", errWire, m.kind)
	}
	if r.bad || len(r.b) > 0 {
		return message{}, errWire
	}
	return m, nil
}
