package tokens

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A body is the magic, a version, a kind, and then items. Numbers are big endian or uvarints, texts and blobs have a
// uvarint length in front.
const (
	magic       = "sctk"
	wireVersion = 1

	kindNews   = 1 // tokens with their data, and revoked ones
	kindDigest = 2

	flagRevoked = 1
	flagAnswer  = 1 // of a digest
)

// Limits of a body, which bound what a receiver allocates.
const (
	MaxBody = 16 << 20
	maxNews = 1024
)

// Path is where the handler belongs.
const Path = "/v1/tokens"

// errWire says that a body cannot be read.
var errWire = errors.New("malformed tokens")

// item is news of one token: a live one with its data, or a revoked one.
type item struct {
	print   print
	expire  int64
	revoked bool
	token   string // of a live one in news
	data    []byte // likewise
}

// message is what a body holds.
type message struct {
	digest bool
	answer bool // the sender of a digest would like the receiver's
	items  []item
}

func (m message) encode() []byte {
	kind, flags := byte(kindNews), byte(0)
	if m.digest {
		kind = kindDigest
	}
	if m.answer {
		flags = flagAnswer
	}
	out := append([]byte(magic), wireVersion, kind, flags)
	out = binary.AppendUvarint(out, uint64(len(m.items)))
	for _, i := range m.items {
		if i.revoked {
			out = append(out, flagRevoked)
		} else {
			out = append(out, 0)
		}
		if i.revoked || m.digest {
			out = append(out, i.print[:]...)
			out = binary.BigEndian.AppendUint64(out, uint64(i.expire))
			continue
		}
		out = append(binary.AppendUvarint(out, uint64(len(i.token))), i.token...)
		out = append(binary.AppendUvarint(out, uint64(len(i.data))), i.data...)
	}
	return out
}

// decode reads a body. The data in what it returns point into b.
func decode(b []byte) (m message, err error) {
	const head = len(magic) + 3
	if len(b) < head || string(b[:len(magic)]) != magic {
		return m, errWire
	}
	if v := b[len(magic)]; v != wireVersion {
		return m, fmt.Errorf("%w: version %d", errWire, v)
	}
	limit := uint64(maxNews)
	switch kind := b[len(magic)+1]; kind {
	case kindNews:
	case kindDigest:
		m.digest, limit = true, maxTokens
	default:
		return m, fmt.Errorf("%w: kind %d", errWire, kind)
	}
	m.answer = b[head-1]&flagAnswer != 0
	r := &reader{b: b[head:]}
	for n := r.uvarint(limit); n > 0 && !r.bad; n-- {
		m.items = append(m.items, r.item(m.digest))
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

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) uvarint(limit uint64) uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > limit {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) item(digest bool) (i item) {
	flags := r.take(1)
	if r.bad || flags[0] > flagRevoked {
		r.bad = true
		return item{}
	}
	if i.revoked = flags[0] == flagRevoked; i.revoked || digest {
		copy(i.print[:], r.take(uint64(len(i.print))))
		if at := r.take(8); !r.bad {
			i.expire = int64(binary.BigEndian.Uint64(at))
		}
		if i.expire < 0 {
			r.bad = true
		}
		return i
	}
	i.token = string(r.take(r.uvarint(maxToken)))
	i.data = r.take(r.uvarint(maxData))
	if !validToken(i.token) {
		r.bad = true
		return item{}
	}
	i.print = printOf(i.token)
	if !r.bad {
		var err error
		if i.expire, err = parse(i.token, i.data); err != nil {
			r.bad = true
		}
	}
	return i
}
