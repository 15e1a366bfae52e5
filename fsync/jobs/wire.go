package jobs

import (
	"encoding/binary"
	"errors"

	"saltclusterd/fsync/replica"
)

// A body has a kind, and what belongs to it.
const (
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

var format = replica.Format{Magic: "scjb", Version: 1, Invalid: errWire}

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

func encodeDigest(d digest) []byte {
	out := append(format.Begin(kindDigest), flag(d.answer, 1))
	out = binary.AppendUvarint(out, uint64(len(d.jobs)))
	for _, j := range d.jobs {
		out = binary.AppendVarint(replica.AppendText(out, j.jid), j.at)
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
	out := binary.AppendVarint(replica.AppendText(format.Begin(kindItems), l.jid), l.at)
	out = binary.AppendUvarint(out, uint64(len(l.items)))
	for _, it := range l.items {
		out = replica.AppendText(append(out, flag(it.ret, 1)), it.name)
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
	out := append(make([]byte, 0, n), format.Begin(kindRecords)...)
	out = binary.AppendUvarint(out, uint64(len(rs)))
	for _, r := range rs {
		out = binary.AppendVarint(replica.AppendText(out, r.jid), r.at)
		out = replica.AppendText(append(out, flag(r.ret, 1)|flag(r.hasO, 2)), r.name)
		mtime := r.mtime
		if r.ret { // of which nodes that do not know of ahead read no time
			mtime = int64(flag(r.ahead, isAhead))
		}
		out = replica.AppendBlob(binary.AppendVarint(out, mtime), r.data)
		if r.hasO {
			out = replica.AppendBlob(out, r.out)
		}
	}
	return out
}

func encodeFind(jid string) []byte { return replica.AppendText(format.Begin(kindFind), jid) }

func encodeList(n int) []byte { return binary.AppendUvarint(format.Begin(kindList), uint64(n)) }

// decode reads a body. What it returns points into b.
func decode(b []byte) (m message, err error) {
	kind, r, err := format.Open(b)
	if err != nil {
		return m, err
	}
	switch m.kind = kind; kind {
	case kindDigest:
		m.digest = readDigest(r)
	case kindItems:
		m.items = readListed(r)
	case kindRecords:
		m.records = readRecords(r)
	case kindFind:
		m.jid = readJID(r)
	case kindList:
		m.count = int(r.Count(maxList))
	default:
		return m, format.Unknown(kind)
	}
	if err := r.End(); err != nil {
		return message{}, err
	}
	return m, nil
}
