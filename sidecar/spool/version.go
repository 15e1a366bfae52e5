package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"saltclusterd/durable"
)

// formatVersion is that of the directory: of cursors, segments and records together. A program whose version is lower
// than the directory's must not read it: a record it does not understand would count as damage.
const (
	formatVersion = 1
	versionFile   = "version"
)

// checkVersion refuses a directory that a newer version has written, and marks one that has no mark.
func (s *Spool) checkVersion() error {
	dir := s.c.Dir
	path := filepath.Join(dir, versionFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		// Without a mark it is of version 1 all the same: a full disk must not keep it from being read.
		if err := durable.WriteFile(path, []byte(strconv.Itoa(formatVersion)+"\n"), 0o600); err != nil {
			s.c.Logger.Warn("journal's version not written", "path", path, "err", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Errorf("read %s: %q is not a version (if no newer saltclusterd ran here, remove the file and start saltclusterd again)", path, b)
	}
	if v > formatVersion {
		return fmt.Errorf("%w (%s: version %d, this one reads %d)", ErrNewer, dir, v, formatVersion)
	}
	return nil
}

// newerSegment says whether a segment begins as ours do, with a higher version.
func newerSegment(b []byte) bool {
	n := len(segmentMagic)
	return string(b[:n-4]) == segmentMagic[:n-4] &&
		binary.BigEndian.Uint32(b[n-4:n]) > binary.BigEndian.Uint32([]byte(segmentMagic[n-4:]))
}
