package chunk

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/restic/chunker"

	"saltclusterd/fsync/tree"
)

const (
	polynomial  = chunker.Pol(0x3DA3358B4DC173)
	minSize     = 512 << 10
	averageBits = 20
	// Whole is the size up to which a file is one piece.
	Whole = 1 << 20
)

// ErrTooLarge says that a file has more than tree.MaxFile bytes.
var ErrTooLarge = errors.New("larger than 2 GiB")

// Cutter cuts one file after the other. It keeps a buffer of the largest piece.
type Cutter struct {
	buf     []byte
	whole   []byte
	chunker *chunker.Chunker
}

// NewCutter makes a Cutter.
func NewCutter() *Cutter { return &Cutter{} }

// Cut reads r to its end and returns its pieces.
func (c *Cutter) Cut(r io.Reader) ([]tree.Chunk, error) {
	if c.buf == nil {
		c.buf = make([]byte, Whole+1)
	}
	head := c.buf[:Whole+1]
	c.whole = nil
	switch n, err := io.ReadFull(r, head); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		c.whole = head[:n]
		return []tree.Chunk{{Hash: tree.Sum(head[:n]), Size: uint32(n)}}, nil
	case err != nil:
		return nil, fmt.Errorf("read: %w", err)
	}
	return c.cutLarge(io.MultiReader(bytes.NewReader(bytes.Clone(head)), r))
}

// Whole is what was cut last when it is one piece; else nil. It is valid until the next call.
func (c *Cutter) Whole() []byte { return c.whole }

func (c *Cutter) cutLarge(r io.Reader) ([]tree.Chunk, error) {
	if len(c.buf) < tree.MaxChunk {
		c.buf = make([]byte, tree.MaxChunk)
	}
	if c.chunker == nil {
		c.chunker = chunker.NewWithBoundaries(r, polynomial, minSize, tree.MaxChunk)
	} else {
		c.chunker.ResetWithBoundaries(r, polynomial, minSize, tree.MaxChunk)
	}
	c.chunker.SetAverageBits(averageBits)
	var out []tree.Chunk
	var total int64
	for {
		p, err := c.chunker.Next(c.buf[:0])
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		if total += int64(p.Length); total > tree.MaxFile {
			return nil, ErrTooLarge
		}
		out = append(out, tree.Chunk{Hash: tree.Sum(p.Data), Size: uint32(p.Length)})
	}
}
