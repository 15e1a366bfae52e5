package roots

import (
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"saltclusterd/fsync/tree"
)

// packMin is the size below which packing is not worth it.
const packMin = 256

// packers makes and opens frames. Encoders and decoders are kept for the next.
type packers struct {
	once sync.Once
	enc  *zstd.Encoder
	dec  *zstd.Decoder
	err  error
}

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

// packing is what one answer knows of what it packs.
type packing struct {
	buf    []byte // used again
	barren int    // contents since one became smaller
}

// Where so many contents in a row did not become smaller, one in so many is tried.
const (
	barrenMost  = 16
	barrenTried = 8
)

// worth says whether to try with the next one: packages and pictures come in crowds.
func (k *packing) worth(size int) bool {
	return size >= packMin && (k.barren < barrenMost || k.barren%barrenTried == 0)
}

// write sends content as a frame, packed when that makes it smaller.
func (p *packers) write(w io.Writer, h Hash, content []byte, k *packing) error {
	f := frame{Encoding: encRaw, Hash: h, Size: uint32(len(content)), Packed: uint32(len(content))}
	payload, worth := content, k.worth(len(content))
	if len(content) >= packMin {
		k.barren++
	}
	if worth {
		if err := p.open(); err != nil {
			return err
		}
		k.buf = p.enc.EncodeAll(content, k.buf[:0])
		if len(k.buf) < len(content)-len(content)/16 {
			f.Encoding, f.Packed, payload, k.barren = encZstd, uint32(len(k.buf)), k.buf, 0
		}
	}
	if _, err := w.Write(f.append(make([]byte, 0, frameSize))); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

// errWrongContent says that a peer sent something else than its hash says.
var errWrongContent = fmt.Errorf("%w: content does not have its hash", errMalformed)

// read reads and verifies the content of a frame. The result is valid until the next call with the same buffers.
func (p *packers) read(r io.Reader, f frame, b *buffers) ([]byte, error) {
	b.packed = grow(b.packed, int(f.Packed))
	if _, err := io.ReadFull(r, b.packed); err != nil {
		return nil, fmt.Errorf("read content: %w", err)
	}
	content := b.packed
	if f.Encoding == encZstd {
		if err := p.open(); err != nil {
			return nil, err
		}
		var err error
		b.content = grow(b.content, int(f.Size))
		if content, err = p.dec.DecodeAll(b.packed, b.content[:0:f.Size]); err != nil {
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

func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

func (p *packers) close() {
	if p.dec != nil {
		p.dec.Close()
	}
}
