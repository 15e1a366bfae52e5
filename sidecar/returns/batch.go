package returns

import (
	"encoding/binary"
	"errors"
	"fmt"

	"saltclusterd/sidecar/spool"
)

// A batch is what goes to another node: magic with version, then records, each with its length before it (u32,
// big-endian) in the journal's own encoding.
const batchMagic = "SCDret\x00\x01"

// MaxBatch bounds a batch in bytes: the largest record, or several small ones.
const MaxBatch = 72 << 20

var errBatch = errors.New("returns: malformed batch")

// appendBatch encodes the first n records of batch: all, or as many as fit.
func appendBatch(dst []byte, batch []spool.Record) (body []byte, n int, err error) {
	dst = append(dst, batchMagic...)
	for _, rec := range batch {
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		if dst, err = spool.AppendRecord(dst, rec); err != nil {
			return nil, 0, err
		}
		if len(dst) > MaxBatch {
			if n == 0 {
				return nil, 0, spool.ErrTooLarge
			}
			return dst[:at], n, nil
		}
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		n++
	}
	return dst, n, nil
}

// parseBatch is the reverse; loads alias body.
func parseBatch(body []byte) ([]spool.Record, error) {
	if len(body) < len(batchMagic) || string(body[:len(batchMagic)]) != batchMagic {
		if n := len(batchMagic) - 1; len(body) > n && string(body[:n]) == batchMagic[:n] && body[n] > batchMagic[n] {
			return nil, fmt.Errorf("%w: %w", errBatch, spool.ErrNewer)
		}
		return nil, fmt.Errorf("%w: not of version 1", errBatch)
	}
	var batch []spool.Record
	for body = body[len(batchMagic):]; len(body) > 0; {
		if len(body) < 4 || len(batch) == batchRecords {
			return nil, errBatch
		}
		n := int(binary.BigEndian.Uint32(body))
		if body = body[4:]; n > len(body) {
			return nil, errBatch
		}
		rec, err := spool.ParseRecord(body[:n])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errBatch, err)
		}
		batch, body = append(batch, rec), body[n:]
	}
	return batch, nil
}
