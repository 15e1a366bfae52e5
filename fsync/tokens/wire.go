package tokens

import (
	"encoding/binary"
	"errors"
	"math"

	"saltclusterd/fsync/replica"
)

// A body has a kind, flags, and then items.
const (
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

var format = replica.Format{Magic: "sctk", Version: 1, Invalid: errWire}

// item is news of one token: a live one with its data, or a revoked one.
type item struct {
	fingerprint fingerprint
	expire      int64
	revoked     bool
	token       string // of a live one in news
	data        []byte // likewise
}

// message is what a body holds.
type message struct {
	digest bool
	answer bool // the sender of a digest would like the receiver's
	items  []item
}

func (m message) encodeMessage() []byte {
	kind, flags := byte(kindNews), byte(0)
	if m.digest {
		kind = kindDigest
	}
	if m.answer {
		flags = flagAnswer
	}
	out := append(format.Begin(kind), flags)
	out = binary.AppendUvarint(out, uint64(len(m.items)))
	for _, i := range m.items {
		if i.revoked {
			out = append(out, flagRevoked)
		} else {
			out = append(out, 0)
		}
		if i.revoked || m.digest {
			out = append(out, i.fingerprint[:]...)
			out = binary.BigEndian.AppendUint64(out, uint64(i.expire))
			continue
		}
		out = replica.AppendBlob(replica.AppendText(out, i.token), i.data)
	}
	return out
}

// decodeMessage reads a body. The data in what it returns point into b.
func decodeMessage(b []byte) (m message, err error) {
	kind, r, err := format.Open(b)
	if err != nil {
		return m, err
	}
	limit := uint64(maxNews)
	switch kind {
	case kindNews:
	case kindDigest:
		m.digest, limit = true, maxTokens
	default:
		return m, format.Unknown(kind)
	}
	m.answer = r.Byte(math.MaxUint8)&flagAnswer != 0
	for n := r.Count(limit); n > 0 && !r.Bad(); n-- {
		m.items = append(m.items, readItem(r, m.digest))
	}
	if err := r.End(); err != nil {
		return message{}, err
	}
	return m, nil
}

func readItem(r *replica.Reader, digest bool) (i item) {
	if i.revoked = r.Byte(flagRevoked) == flagRevoked; i.revoked || digest {
		copy(i.fingerprint[:], r.Take(uint64(len(i.fingerprint))))
		if i.expire = int64(r.Uint64()); i.expire < 0 {
			r.Fail()
		}
		return i
	}
	i.token = string(r.Blob(maxToken))
	i.data = r.Blob(maxData)
	if r.Bad() || !validToken(i.token) {
		r.Fail()
		return item{}
	}
	i.fingerprint = fingerprintOf(i.token)
	var err error
	if i.expire, err = parseToken(i.token, i.data); err != nil {
		r.Fail()
	}
	return i
}
