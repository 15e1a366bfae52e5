package content

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"saltclusterd/fsync/tree"
)

// packMin is the size below which packing is not worth it.
const packMin = 256

// packers makes and opens frames. Encoders and decoders are kept for the next.
type packers struct {
	once    sync.Once
	enc     *zstd.Encoder
	dec     *zstd.Decoder
	err     error
	resting sync.Pool // of *packing
}

// packing returns what an earlier answer has learnt, and its buffer, or a new one; it is for rest in the end.
func (p *packers) packing() *packing {
	if k, ok := p.resting.Get().(*packing); ok {
		return k
	}
	return &packing{}
}

func (p *packers) rest(k *packing) { p.resting.Put(k) }

func (p *packers) open() error {
	p.once.Do(func() {
		p.enc, p.err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
			zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
		if p.err == nil {
			p.dec, p.err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(tree.MaxObject),
				zstd.WithDecoderMaxWindow(tree.MaxObject), zstd.WithDecoderLowmem(true))
		}
	})
	return p.err
}

// packing is what answers, one after the other, know of what they pack.
type packing struct {
	buf    []byte // used again
	sample []byte // the same
	barren int    // contents since one became smaller
}

// Of large content a sample is packed first, which has so many pieces of that size.
const (
	sampleFrom   = 64 << 10
	samplePieces = 4
	sampleSize   = 2 << 10
)

// Where so many contents in a row did not become smaller, one in so many is tried.
const (
	barrenMost  = 16
	barrenTried = 8
)

// worth says whether to try with the next one: packages and pictures come in crowds.
func (k *packing) worth(size int) bool {
	return size >= packMin && (k.barren < barrenMost || k.barren%barrenTried == 0)
}

// writeFrame sends content as a frame, packed when that makes it smaller.
func (p *packers) writeFrame(w io.Writer, h Hash, content []byte, k *packing) error {
	f := frame{Encoding: encRaw, Hash: h, Size: uint32(len(content)), Packed: uint32(len(content))}
	payload, worth := content, k.worth(len(content))
	if len(content) >= packMin {
		k.barren++
	}
	if worth {
		if err := p.open(); err != nil {
			return err
		}
		if p.pack(content, k) {
			f.Encoding, f.Packed, payload, k.barren = encZstd, uint32(len(k.buf)), k.buf, 0
		}
	}
	if _, err := w.Write(f.append(make([]byte, 0, frameSize))); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

// pack packs content into k.buf; false: that is not worth it.
func (p *packers) pack(content []byte, k *packing) bool {
	if len(content) >= sampleFrom {
		k.sample = k.sample[:0]
		for i := range samplePieces {
			at := i * (len(content) - sampleSize) / (samplePieces - 1)
			k.sample = append(k.sample, content[at:at+sampleSize]...)
		}
		if k.buf = p.enc.EncodeAll(k.sample, k.buf[:0]); !shrunk(k.buf, k.sample) {
			return false
		}
	}
	k.buf = p.enc.EncodeAll(content, k.buf[:0])
	return shrunk(k.buf, content)
}

func shrunk(packed, content []byte) bool { return len(packed) < len(content)-len(content)/16 }

// errWrongContent says that a peer sent something else than its hash says.
var errWrongContent = fmt.Errorf("%w: content does not have its hash", errMalformed)

// readContent reads and verifies the content of a frame. The result is valid until the next call with the same buffers,
// and until something else is read.
func (p *packers) readContent(r *bufio.Reader, f frame, b *buffers) ([]byte, error) {
	packed, err := b.readPacked(r, int(f.Packed))
	if err != nil {
		return nil, fmt.Errorf("read content: %w", err)
	}
	content := packed
	if f.Encoding == encZstd {
		if err := p.open(); err != nil {
			return nil, err
		}
		b.content = slices.Grow(b.content[:0], int(f.Size))
		if content, err = p.dec.DecodeAll(packed, b.content[:0:f.Size]); err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
	}
	if len(content) != int(f.Size) || tree.Sum(content) != f.Hash {
		return nil, errWrongContent
	}
	return content, nil
}

// buffers are used for one frame after the other.
type buffers struct{ packed, content []byte }

// readPacked reads so many bytes. What fits into the reader's own buffer stays there.
func (b *buffers) readPacked(r *bufio.Reader, n int) ([]byte, error) {
	if n > r.Size() {
		b.packed = slices.Grow(b.packed[:0], n)[:n]
		_, err := io.ReadFull(r, b.packed)
		return b.packed, err
	}
	packed, err := r.Peek(n)
	if err != nil {
		return nil, err
	}
	_, err = r.Discard(n)
	return packed, err
}

func (p *packers) close() {
	if p.dec != nil {
		p.dec.Close()
	}
}
