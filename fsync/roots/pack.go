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

// write sends content as a frame, packed when that makes it smaller. buf is used again.
func (p *packers) write(w io.Writer, h Hash, content, buf []byte) ([]byte, error) {
	f := frame{Encoding: encRaw, Hash: h, Size: uint32(len(content)), Packed: uint32(len(content))}
	payload := content
	if len(content) >= packMin {
		if err := p.open(); err != nil {
			return buf, err
		}
		buf = p.enc.EncodeAll(content, buf[:0])
		if len(buf) < len(content)-len(content)/16 {
			f.Encoding, f.Packed, payload = encZstd, uint32(len(buf)), buf
		}
	}
	if _, err := w.Write(f.append(make([]byte, 0, frameSize))); err != nil {
		return buf, err
	}
	_, err := w.Write(payload)
	return buf, err
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
