package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// Record is one entry of the journal.
type Record struct {
	Seq      uint64    // assigned by the spool: 1, 2, 3, …
	Kind     uint8     // the caller's; what is to be done with it
	Received time.Time // when the minion's request came in, to the nanosecond
	Minion   string    // from the envelope
	JID      string    // the load's, or the one it was given when it had none
	From     string    // the node that relayed it; "" when it came in here
	To       string    // the node it is kept for; "" for this one
	Load     []byte    // the plaintext as decrypted

	// Attachment is not written: it goes along while the record stays in memory and is nil after a restart.
	Attachment any
}

// recordVersion is the first byte of a record's encoding.
const recordVersion = 1

// errRecord means that bytes with a good checksum are not a record of this version.
var errRecord = errors.New("not a record")

// AppendRecord encodes a record without its number, as it stands in the journal. Error: ErrTooLarge.
func AppendRecord(dst []byte, r Record) ([]byte, error) { return appendRecord(dst, &r) }

// ParseRecord is the reverse of AppendRecord. Load aliases b. Error: ErrNewer for one of a version to come.
func ParseRecord(b []byte) (Record, error) { return parseRecord(b) }

// appendRecord encodes r: version, kind, received (Unix nanoseconds), four strings with u16 lengths, and the load.
func appendRecord(dst []byte, r *Record) ([]byte, error) {
	dst = append(dst, recordVersion, r.Kind)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.Received.UnixNano()))
	for _, s := range [...]string{r.Minion, r.JID, r.From, r.To} {
		if len(s) > math.MaxUint16 {
			return nil, fmt.Errorf("%w: a field of %d bytes", ErrTooLarge, len(s))
		}
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
		dst = append(dst, s...)
	}
	return append(dst, r.Load...), nil
}

// parseRecord is the reverse. Load aliases b.
func parseRecord(b []byte) (Record, error) {
	if len(b) > 0 && b[0] > recordVersion {
		return Record{}, ErrNewer
	}
	if len(b) < 10 || b[0] != recordVersion {
		return Record{}, errRecord
	}
	r := Record{Kind: b[1], Received: time.Unix(0, int64(binary.BigEndian.Uint64(b[2:])))}
	b = b[10:]
	for _, s := range [...]*string{&r.Minion, &r.JID, &r.From, &r.To} {
		if len(b) < 2 {
			return Record{}, errRecord
		}
		n := int(binary.BigEndian.Uint16(b))
		if b = b[2:]; len(b) < n {
			return Record{}, errRecord
		}
		*s, b = string(b[:n]), b[n:]
	}
	r.Load = b
	return r, nil
}
