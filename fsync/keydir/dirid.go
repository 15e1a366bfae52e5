package keydir

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// dirID tells a directory from another one that stands at its path later. The inode alone does not: file systems give
// the number of a removed directory to the next one. The zero dirID is none.
type dirID struct {
	ino   uint64
	birth int64 // unix nanoseconds; 0 where the file system does not say
}

// idOf returns the zero dirID when there is nothing.
func idOf(path string) dirID {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_SYNC_AS_STAT, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return dirID{}
	}
	id := dirID{ino: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.birth = time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).UnixNano()
	}
	return id
}

// text is the form in which the base keeps it.
func (d dirID) text() string {
	if d == (dirID{}) {
		return ""
	}
	return fmt.Sprintf("%d.%d", d.ino, d.birth)
}

// lost says which directory the base knows keys in is gone, or not the one it was: what is missing from it has not been
// deleted by anyone. Stock Salt makes such a directory anew, and empty, whenever it finds it missing
// (salt/utils/verify.py:verify_env).
func (l *loop) lost() (place, bool) {
	for p := range places {
		was, now := l.m.base.Dirs[p.String()], idOf(l.disk.dir(p))
		if (now == dirID{} || was != "" && was != now.text()) && l.basedIn(p) {
			return p, true
		}
	}
	return 0, false
}

// checkDirs distrusts directories of which one was lost. Consensus then decides about all keys, and puts them back.
func (l *loop) checkDirs() {
	if l.m.base.Stale != fresh {
		return
	}
	if p, lost := l.lost(); lost {
		l.log.Warn("a key directory was removed or replaced: consensus decides about all keys", "path", l.disk.dir(p))
		l.m.distrust()
	}
}

// knowDirs notes which directories the base is about: those of the last scan.
func (l *loop) knowDirs() {
	for p := range places {
		if id := l.disk.dirs[p].text(); l.m.base.Dirs[p.String()] != id {
			l.m.base.Dirs[p.String()] = id
			l.m.dirty = true
		}
	}
}
