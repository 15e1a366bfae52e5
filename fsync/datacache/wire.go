package datacache

import (
	"encoding/binary"
	"errors"

	"saltclusterd/fsync/msgpack"
	"saltclusterd/fsync/replica"
)

// A body has a kind, and then records or a digest.
const (
	kindRecords = 1 // grains and pillars
	kindDigest  = 2
	kindMines   = 3 // records of mines: without pillars, and without a map when the mine is gone
)

// Limits of a body, which bound what a receiver allocates.
const (
	MaxBody    = 40 << 20 // bytes of a body
	maxRecords = 256
	maxPillars = 8
	maxDigest  = 20_000
)

// errWire says that a body cannot be read.
var errWire = errors.New("malformed minion data")

var format = replica.Format{Magic: "scmd", Version: 1, Invalid: errWire}

// record is a minion's data on their way.
type record struct {
	id    string
	stamp uint64
	key   string // print of the accepted key the data were gathered under
	data  data
}

// digest tells a peer what stamps the sender has. Within the range it is complete: what is not listed is lacking.
type digest struct {
	ranged   bool
	from, to string // of ids: from < id <= to; an empty to has no end
	answer   bool   // the sender would like the receiver's digest
	stamps   []stamped
}

type stamped struct {
	id    string
	stamp uint64 // 0: lacking
}

// appendRecord appends one record; the caller has written the header and counts.
func appendRecord(dst []byte, r record) []byte {
	dst = replica.AppendText(dst, r.id)
	dst = binary.BigEndian.AppendUint64(dst, r.stamp)
	dst = replica.AppendText(dst, r.key)
	dst = replica.AppendBlob(dst, r.data.main)
	dst = binary.AppendUvarint(dst, uint64(len(r.data.pillars)))
	for _, p := range r.data.pillars {
		dst = replica.AppendBlob(replica.AppendText(dst, p.env), p.raw)
	}
	return dst
}

func encodeRecords(k Kind, rs []record) []byte {
	out := format.Begin(k.records())
	out = binary.AppendUvarint(out, uint64(len(rs)))
	for _, r := range rs {
		out = appendRecord(out, r)
	}
	return out
}

func encodeDigest(d digest) []byte {
	out := format.Begin(kindDigest)
	var flags byte
	if d.ranged {
		flags |= 1
	}
	if d.answer {
		flags |= 2
	}
	out = append(out, flags)
	out = replica.AppendText(replica.AppendText(out, d.from), d.to)
	out = binary.AppendUvarint(out, uint64(len(d.stamps)))
	for _, s := range d.stamps {
		out = binary.BigEndian.AppendUint64(replica.AppendText(out, s.id), s.stamp)
	}
	return out
}

// message is what a body holds: records or a digest.
type message struct {
	records []record
	digest  *digest
}

// decode reads a body for a Store of kind k. What it returns points into b.
func decode(k Kind, b []byte) (m message, err error) {
	kind, r, err := format.Open(b)
	if err != nil {
		return m, err
	}
	switch kind {
	case k.records():
		m.records = readRecords(r, k)
	case kindDigest:
		m.digest = readDigest(r)
	default:
		return m, format.Unknown(kind)
	}
	if err := r.End(); err != nil {
		return message{}, err
	}
	return m, nil
}

func readID(r *replica.Reader) string {
	id := string(r.Blob(uint64(maxID)))
	if !validID(id) {
		r.Fail()
	}
	return id
}

func readRecords(r *replica.Reader, k Kind) []record {
	n := r.Count(maxRecords)
	var out []record
	for ; n > 0 && !r.Bad(); n-- {
		rec := record{id: readID(r), stamp: r.Uint64(), key: string(r.Blob(maxPrint))}
		if rec.data.main = r.Blob(maxFile); (len(rec.data.main) > 0 || k != Mine) && !msgpack.WholeMap(rec.data.main) {
			r.Fail()
		}
		for p := r.Count(k.maxPillars()); p > 0 && !r.Bad(); p-- {
			one := pillar{string(r.Blob(maxEnv)), r.Blob(maxFile)}
			if one.env != "" && !validEnv(one.env) || !msgpack.WholeMap(one.raw) {
				r.Fail()
			}
			rec.data.pillars = append(rec.data.pillars, one)
		}
		out = append(out, rec)
	}
	return out
}

func readDigest(r *replica.Reader) *digest {
	flags := r.Byte(3)
	d := &digest{ranged: flags&1 != 0, answer: flags&2 != 0}
	d.from, d.to = string(r.Blob(uint64(maxID))), string(r.Blob(uint64(maxID)))
	for n := r.Count(maxDigest); n > 0 && !r.Bad(); n-- {
		d.stamps = append(d.stamps, stamped{readID(r), r.Uint64()})
	}
	return d
}
