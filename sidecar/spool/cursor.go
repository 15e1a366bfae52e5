package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A cursor file holds two slots that are written in turn, so that one is whole whatever happens to the other: magic
// with version, generation, done, durable, boot id, checksum.
const (
	cursorMagic  = "SCDcurs\x01"
	cursorSlot   = 512 // one sector each
	cursorLength = 8 + 3*8 + 36 + 4
)

// cursor is how far a consumer came.
type cursor struct {
	f    *os.File
	boot string

	mu            sync.Mutex
	generation    uint64
	done, durable uint64
}

// openCursor reads or creates a consumer's cursor. After a power loss or reboot only durable holds: what was done later
// may not be on disk.
func openCursor(dir, name string, disk Disk) (*cursor, error) {
	path := filepath.Join(dir, "cursor."+name)
	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if missing != nil { // lost with a power loss it would repeat all there is
		if err := disk.Names(dir); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	c := &cursor{f: f, boot: disk.Boot}
	var was string
	for slot := range int64(2) {
		b := make([]byte, cursorLength)
		if _, err := f.ReadAt(b, slot*cursorSlot); err != nil {
			if errors.Is(err, io.EOF) {
				continue
			}
			return nil, errors.Join(err, f.Close())
		}
		generation, done, durable, b4, ok := parseCursor(b)
		if ok && generation >= c.generation {
			c.generation, c.done, c.durable, was = generation, done, durable, b4
		}
	}
	if was != disk.Boot {
		c.done = c.durable
	}
	return c, nil
}

func parseCursor(b []byte) (generation, done, durable uint64, boot string, ok bool) {
	body := b[:cursorLength-4]
	if len(b) < cursorLength || string(b[:8]) != cursorMagic ||
		crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(b[cursorLength-4:]) {
		return 0, 0, 0, "", false
	}
	u := binary.BigEndian.Uint64
	return u(b[8:]), u(b[16:]), u(b[24:]), strings.TrimRight(string(b[32:68]), "\x00"), true
}

// advanceTo stores what the consumer is done with; it survives a kill of the process.
func (c *cursor) advanceTo(done uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writeState(done, c.durable)
}

// saveDurable stores what it is done with for good; it survives a power loss.
func (c *cursor) saveDurable(durable uint64) error {
	c.mu.Lock()
	err := c.writeState(max(c.done, durable), durable)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.f.Sync(); err != nil {
		return fmt.Errorf("write cursor: %w", err)
	}
	return nil
}

// writeState wants mu.
func (c *cursor) writeState(done, durable uint64) error {
	b := append(make([]byte, 0, cursorLength), cursorMagic...)
	for _, v := range [...]uint64{c.generation + 1, done, durable} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	var boot [36]byte
	copy(boot[:], c.boot)
	b = append(b, boot[:]...)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if _, err := c.f.WriteAt(b, int64(c.generation+1)%2*cursorSlot); err != nil {
		return fmt.Errorf("write cursor: %w", err)
	}
	c.generation++
	c.done, c.durable = done, durable
	return nil
}
