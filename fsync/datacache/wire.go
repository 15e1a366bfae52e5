package datacache

import (
	"encoding/binary"
	"errors"
	"fmt"

	"saltclusterd/fsync/msgpack"
)

// A body is the magic, a version, a kind, and then records or a digest. Numbers are big endian or uvarints, texts and
// blobs have a uvarint length in front.
const (
	magic       = "scmd"
	wireVersion = 1

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

func appendHeader(dst []byte, kind byte) []byte {
	return append(append(dst, magic...), wireVersion, kind)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendRecord appends one record; the caller has written the header and counts.
func appendRecord(dst []byte, r record) []byte {
	dst = appendText(dst, r.id)
	dst = binary.BigEndian.AppendUint64(dst, r.stamp)
	dst = appendText(dst, r.key)
	dst = append(binary.AppendUvarint(dst, uint64(len(r.data.main))), r.data.main...)
	dst = binary.AppendUvarint(dst, uint64(len(r.data.pillars)))
	for _, p := range r.data.pillars {
		dst = appendText(dst, p.env)
		dst = append(binary.AppendUvarint(dst, uint64(len(p.raw))), p.raw...)
	}
	return dst
}

func encodeRecords(k Kind, rs []record) []byte {
	out := appendHeader(nil, k.records())
	out = binary.AppendUvarint(out, uint64(len(rs)))
	for _, r := range rs {
		out = appendRecord(out, r)
	}
	return out
}

func encodeDigest(d digest) []byte {
	out := appendHeader(nil, kindDigest)
	var flags byte
	if d.ranged {
		flags |= 1
	}
	if d.answer {
		flags |= 2
	}
	out = append(out, flags)
	out = appendText(appendText(out, d.from), d.to)
	out = binary.AppendUvarint(out, uint64(len(d.stamps)))
	for _, s := range d.stamps {
		out = binary.BigEndian.AppendUint64(appendText(out, s.id), s.stamp)
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
	if len(b) < len(magic)+2 || string(b[:len(magic)]) != magic {
		return m, errWire
	}
	if v := b[len(magic)]; v != wireVersion {
		return m, fmt.Errorf("%w: version %d", errWire, v)
	}
	r := &reader{b: b[len(magic)+2:]}
	switch kind := b[len(magic)+1]; kind {
	case k.records():
		m.records = r.records(k)
	case kindDigest:
		m.digest = r.digest()
	default:
		return m, fmt.Errorf("%w: kind %d", errWire, kind)
	}
	if r.bad || len(r.b) > 0 {
		return message{}, errWire
	}
	return m, nil
}

// reader takes values off b; the first that is not there or not allowed makes it bad.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.bad, r.b = true, nil }

func (r *reader) count(limit uint64) uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > limit {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) blob(limit uint64) []byte {
	n := r.count(limit)
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) uint64() uint64 {
	if len(r.b) < 8 {
		r.fail()
		return 0
	}
	n := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return n
}

func (r *reader) id() string {
	id := string(r.blob(uint64(maxID)))
	if !validID(id) {
		r.fail()
	}
	return id
}

func (r *reader) mapBlob() []byte {
	raw := r.blob(maxFile)
	if !msgpack.WholeMap(raw) {
		r.fail()
	}
	return raw
}

func (r *reader) records(k Kind) []record {
	n := r.count(maxRecords)
	var out []record
	for ; n > 0 && !r.bad; n-- {
		rec := record{id: r.id(), stamp: r.uint64(), key: string(r.blob(maxPrint))}
		if rec.data.main = r.blob(maxFile); (len(rec.data.main) > 0 || k != Mine) && !msgpack.WholeMap(rec.data.main) {
			r.fail()
		}
		for p := r.count(k.maxPillars()); p > 0 && !r.bad; p-- {
			env := string(r.blob(maxEnv))
			if env != "" && !validEnv(env) {
				r.fail()
			}
			rec.data.pillars = append(rec.data.pillars, pillar{env, r.mapBlob()})
		}
		out = append(out, rec)
	}
	return out
}

func (r *reader) digest() *digest {
	if len(r.b) == 0 || r.b[0] > 3 {
		r.fail()
		return nil
	}
	d := &digest{ranged: r.b[0]&1 != 0, answer: r.b[0]&2 != 0}
	r.b = r.b[1:]
	d.from, d.to = string(r.blob(uint64(maxID))), string(r.blob(uint64(maxID)))
	for n := r.count(maxDigest); n > 0 && !r.bad; n-- {
		d.stamps = append(d.stamps, stamped{r.id(), r.uint64()})
	}
	return d
}
