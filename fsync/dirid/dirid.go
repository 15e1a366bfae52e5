// Package dirid tells a directory from another one that stands at its path later: what is missing from a directory that
// was replaced has not been deleted by anyone.
package dirid

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ID is a directory. The inode alone does not tell: file systems give the number of a removed directory to the next
// one. The zero ID is none.
type ID struct {
	ino   uint64
	birth int64 // unix nanoseconds; 0 where the file system does not say
}

// Of returns the zero ID when there is nothing.
func Of(path string) ID {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_SYNC_AS_STAT, unix.STATX_INO|unix.STATX_BTIME,
		&st); err != nil {
		return ID{}
	}
	id := ID{ino: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.birth = time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).UnixNano()
	}
	return id
}

// Text is the form in which it is kept in files, empty for none.
func (d ID) Text() string {
	if d == (ID{}) {
		return ""
	}
	return fmt.Sprintf("%d.%d", d.ino, d.birth)
}
