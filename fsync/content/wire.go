package content

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"saltclusterd/fsync/tree"
)

// What peers ask each other. A request is a magic, a question and a list of hashes. The answer to questionWant is a
// stream of frames, one for each hash in the order of the list, and a last one; a peer may end it earlier with that
// last one.
const (
	requestMagic = "SCQ\x01"

	questionWant = 1 // the content of objects and chunks
	questionHave = 2 // which of them are there: a byte for each, 0 or 1
	questionLive = 3 // the root of what is live: 32 bytes
)

// maxHashes bounds a request, maxRequest its bytes.
const (
	maxHashes  = 1024
	maxRequest = 64 + 32*maxHashes
)

var errMalformed = errors.New("malformed message of a peer")

func encodeRequest(question byte, hashes []Hash) []byte {
	b := make([]byte, 0, len(requestMagic)+3+len(hashes)*len(Hash{}))
	b = append(b, requestMagic...)
	b = append(b, question)
	b = binary.BigEndian.AppendUint16(b, uint16(len(hashes)))
	for i := range hashes {
		b = append(b, hashes[i][:]...)
	}
	return b
}

func decodeRequest(b []byte) (question byte, hashes []Hash, err error) {
	const head = len(requestMagic) + 3
	if len(b) < head || string(b[:len(requestMagic)]) != requestMagic {
		return 0, nil, fmt.Errorf("%w: not a request", errMalformed)
	}
	question = b[head-3]
	n := int(binary.BigEndian.Uint16(b[head-2:]))
	b = b[head:]
	if question < questionWant || question > questionLive || n > maxHashes || len(b) != n*len(Hash{}) {
		return 0, nil, fmt.Errorf("%w: question %d with %d hashes", errMalformed, question, n)
	}
	hashes = make([]Hash, n)
	for i := range hashes {
		copy(hashes[i][:], b[i*len(Hash{}):])
	}
	return question, hashes, nil
}

// encoding says how a frame has its content.
type encoding byte

const (
	encMissing encoding = iota // not there
	encRaw
	encZstd
	encEnd // the last frame
)

// frame is the head of a frame: content of Packed bytes follows, which is Size bytes long when it is unpacked.
type frame struct {
	Encoding     encoding
	Hash         Hash
	Size, Packed uint32
}

const frameSize = 1 + 32 + 4 + 4

func (f frame) append(b []byte) []byte {
	b = append(append(b, byte(f.Encoding)), f.Hash[:]...)
	b = binary.BigEndian.AppendUint32(b, f.Size)
	return binary.BigEndian.AppendUint32(b, f.Packed)
}

// readFrame reads the head of a frame and checks that its content may be read into memory.
func readFrame(r io.Reader) (frame, error) {
	var b [frameSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return frame{}, fmt.Errorf("read frame: %w", err)
	}
	f := frame{Encoding: encoding(b[0]), Size: binary.BigEndian.Uint32(b[33:]), Packed: binary.BigEndian.Uint32(b[37:])}
	copy(f.Hash[:], b[1:])
	ok := f.Encoding <= encEnd && f.Size <= tree.MaxObject && f.Packed <= f.Size
	switch f.Encoding {
	case encRaw:
		ok = ok && f.Packed == f.Size
	case encMissing, encEnd:
		ok = ok && f.Size == 0
	}
	if !ok {
		return frame{}, fmt.Errorf("%w: frame %d of %d bytes", errMalformed, f.Encoding, f.Size)
	}
	return f, nil
}
