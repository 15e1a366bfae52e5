package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

const (
	magic   = "saltclusterd snapshot\n"
	version = 1
)

// Bounds of a file.
const (
	MaxHeader = 256 << 10
	MaxBody   = 1 << 30
	maxKey    = 64 << 10 // bytes of one of the identity's keys
)

// Errors of this package. Test with errors.Is.
var (
	ErrFormat   = errors.New("this is not a snapshot of saltclusterd, or it is damaged")
	ErrVersion  = errors.New("the snapshot was written by a newer saltclusterd")
	ErrChecksum = errors.New("the snapshot is damaged: its checksum does not match")
)

// Header says what a snapshot is of. It holds no secret.
type Header struct {
	ClusterID           string    `json:"cluster_id"`
	UUID                string    `json:"uuid"`
	Generation          uint64    `json:"generation"`
	IdentityFingerprint string    `json:"identity_fingerprint"`
	Node                string    `json:"node"`    // that wrote it
	Version             string    `json:"version"` // of its saltclusterd
	Created             time.Time `json:"created"`
	Index               uint64    `json:"index"`
	Rev                 uint64    `json:"rev"`
	Epoch               uint64    `json:"epoch"`
	Members             []string  `json:"members"`
	Keys                Counts    `json:"keys"`
}

// Counts are numbers of minion keys.
type Counts struct {
	Accepted int `json:"accepted"`
	Pending  int `json:"pending"`
	Rejected int `json:"rejected"`
	Denied   int `json:"denied"`
	Deleted  int `json:"deleted"` // that are remembered as deleted
}

// Content is what must be kept secret.
type Content struct {
	Private, Public []byte // the cluster's identity
	Clock           uint64 // newest serial handed out, at least
	State           []byte // consensus/state's snapshot
}

// Write writes a snapshot.
func Write(w io.Writer, h Header, c Content) error {
	body, err := c.encode()
	if err != nil {
		return err
	}
	head, err := json.Marshal(h)
	if err != nil || len(head) > MaxHeader {
		return fmt.Errorf("write snapshot: header of %d bytes: %w", len(head), err)
	}
	if len(body) > MaxBody {
		return fmt.Errorf("write snapshot: %d bytes, at most %d", len(body), MaxBody)
	}
	sum := sha256.New()
	out := io.MultiWriter(w, sum)
	front := binary.BigEndian.AppendUint32(append([]byte(magic), version), uint32(len(head)))
	front = binary.BigEndian.AppendUint64(append(front, head...), uint64(len(body)))
	for _, part := range [][]byte{front, body} {
		if _, err := out.Write(part); err != nil {
			return fmt.Errorf("write snapshot: %w", err)
		}
	}
	if _, err := w.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// Inspect reads a whole snapshot without keeping its body, and returns what it is of.
func Inspect(r io.Reader) (Header, error) {
	in := newReader(r)
	h, n, err := in.head()
	if err != nil {
		return Header{}, err
	}
	if got, err := io.CopyN(io.Discard, in, n); err != nil || got != n {
		return Header{}, fmt.Errorf("%w: it is truncated", ErrFormat)
	}
	return h, in.finish()
}

// Read reads a snapshot.
func Read(r io.Reader) (Header, Content, error) {
	in := newReader(r)
	h, n, err := in.head()
	if err != nil {
		return Header{}, Content{}, err
	}
	var body bytes.Buffer // grows with what is there, not with what is announced
	if got, err := io.CopyN(&body, in, n); err != nil || got != n {
		return Header{}, Content{}, fmt.Errorf("%w: it is truncated", ErrFormat)
	}
	if err := in.finish(); err != nil {
		return Header{}, Content{}, err
	}
	c, err := decode(body.Bytes())
	return h, c, err
}

// reader sums up what it reads.
type reader struct {
	r   io.Reader
	sum hash.Hash
}

func newReader(r io.Reader) *reader { return &reader{r, sha256.New()} }

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.sum.Write(b[:n])
	return n, err
}

// head reads everything before the body: the header and the body's length.
func (r *reader) head() (h Header, body int64, err error) {
	front := make([]byte, len(magic)+1+4)
	if _, err := io.ReadFull(r, front); err != nil || string(front[:len(magic)]) != magic {
		return h, 0, ErrFormat
	}
	if v := front[len(magic)]; v > version {
		return h, 0, fmt.Errorf("%w: version %d, this one reads %d", ErrVersion, v, version)
	}
	n := binary.BigEndian.Uint32(front[len(magic)+1:])
	if n > MaxHeader {
		return h, 0, fmt.Errorf("%w: header of %d bytes", ErrFormat, n)
	}
	text := make([]byte, n+8)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, 0, fmt.Errorf("%w: it is truncated", ErrFormat)
	}
	length := binary.BigEndian.Uint64(text[n:])
	text = text[:n]
	if length > MaxBody {
		return h, 0, fmt.Errorf("%w: body of %d bytes", ErrFormat, length)
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, 0, fmt.Errorf("%w: header", ErrFormat)
	}
	return h, int64(length), nil
}

// finish compares the checksum, which must be the last thing.
func (r *reader) finish() error {
	want := r.sum.Sum(nil)
	got := make([]byte, len(want)+1)
	switch n, err := io.ReadFull(r.r, got); {
	case err == nil:
		return fmt.Errorf("%w: it has data after its end", ErrFormat)
	case n < len(want):
		return fmt.Errorf("%w: it is truncated", ErrFormat)
	case !bytes.Equal(got[:n], want):
		return ErrChecksum
	}
	return nil
}

func (c Content) encode() ([]byte, error) {
	if len(c.Private) > maxKey || len(c.Public) > maxKey {
		return nil, errors.New("write snapshot: the identity is too large")
	}
	b := make([]byte, 0, 16+len(c.Private)+len(c.Public)+len(c.State))
	for _, key := range [][]byte{c.Private, c.Public} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(key))), key...)
	}
	return append(binary.BigEndian.AppendUint64(b, c.Clock), c.State...), nil
}

func decode(b []byte) (c Content, err error) {
	for _, key := range []*[]byte{&c.Private, &c.Public} {
		if len(b) < 4 {
			return Content{}, ErrFormat
		}
		n := binary.BigEndian.Uint32(b)
		if b = b[4:]; n > maxKey || int(n) > len(b) {
			return Content{}, ErrFormat
		}
		*key, b = b[:n:n], b[n:]
	}
	if len(b) < 8 {
		return Content{}, ErrFormat
	}
	c.Clock, c.State = binary.BigEndian.Uint64(b), b[8:]
	return c, nil
}
