package spool

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"saltclusterd/durable"
)

// segmentMagic starts every segment; its last byte is the version of the format.
const segmentMagic = "SCDspool\x00\x00\x00\x01"

const segmentSuffix = ".journal"

// segment is one file of the journal. Which records it may hold stands in its name, so that a damaged first block does
// not make the rest unreadable.
type segment struct {
	name  string
	first uint64 // number of its first record
	salt  uint64
	size  int64 // bytes that are good to read; grows while the segment is the active one
	holes []Damage
}

// segmentLog is the segments that there are.
type segmentLog struct {
	segments []*segment
	bytes    int64  // of all
	next     uint64 // number of the next record
}

// lastSegment is the one that grows.
func (l *segmentLog) lastSegment() *segment { return l.segments[len(l.segments)-1] }

func (l *segmentLog) addSegment(g *segment, bytes int64) {
	l.segments = append(l.segments, g)
	l.bytes += bytes
}

// removeSegment leaves the slice that readers may hold as it is.
func (l *segmentLog) removeSegment(i int) {
	l.bytes -= l.segments[i].size
	l.segments = append(l.segments[:i:i], l.segments[i+1:]...)
}

// putBack is for one that was the oldest, and is again.
func (l *segmentLog) putBack(g *segment) {
	l.bytes += g.size
	l.segments = append([]*segment{g}, l.segments...)
}

// growLast takes the bytes of so many records into the last segment.
func (l *segmentLog) growLast(bytes int64, records int) {
	l.lastSegment().size += bytes
	l.bytes += bytes
	l.next += uint64(records)
}

func newSegmentName(first uint64) (string, uint64, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", 0, fmt.Errorf("salt: %w", err)
	}
	salt := binary.BigEndian.Uint64(b[:])
	return segmentName(first, salt), salt, nil
}

func segmentName(first, salt uint64) string {
	return fmt.Sprintf("%020d-%016x%s", first, salt, segmentSuffix)
}

func parseSegmentName(name string) (*segment, bool) {
	text, ok := strings.CutSuffix(name, segmentSuffix)
	number, salt, ok2 := strings.Cut(text, "-")
	if !ok || !ok2 || len(number) != 20 || len(salt) != 16 {
		return nil, false
	}
	first, err := strconv.ParseUint(number, 10, 64)
	s, err2 := strconv.ParseUint(salt, 16, 64)
	if err != nil || err2 != nil || first == 0 || segmentName(first, s) != name {
		return nil, false
	}
	return &segment{name: name, first: first, salt: s}, true
}

// listSegments returns the segments in dir by first number.
func listSegments(dir string) ([]*segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []*segment
	for _, e := range entries {
		if s, ok := parseSegmentName(e.Name()); ok && e.Type().IsRegular() {
			list = append(list, s)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].first < list[j].first })
	return list, nil
}

// createSegment makes an empty segment whose existence survives a power loss.
func createSegment(dir string, first uint64) (*segment, *os.File, error) {
	name, salt, err := newSegmentName(first)
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, err
	}
	_, err = f.WriteString(segmentMagic)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = durable.SyncDir(dir)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return &segment{name: name, first: first, salt: salt, size: int64(len(segmentMagic))}, f, nil
}
