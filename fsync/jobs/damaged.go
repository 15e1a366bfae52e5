package jobs

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/durable/torn"
)

// unsynced is how long before a machine started again its masters may have written files of which a power loss left the
// name only; the kernel writes what is older. Our own files are synced before they count.
const unsynced = 10 * time.Minute

// bootTime is when this machine started, by its clock.
func bootTime(now time.Time) time.Time {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return time.Time{}
	}
	return now.Add(-time.Duration(info.Uptime) * time.Second)
}

// damaged says whether a minion's return, whose return.p is like st, is one that a power loss has spoilt: then it does
// not count as a return, and is to be had from the others. An empty one is always damaged, because every writer renames
// return.p into its place only once it is written. Other damage, zeros or the mere beginning of a return, is looked for
// in the files of the last minutes before the machine started.
func (d disk) damaged(fd int, minion string, st *unix.Stat_t) bool {
	if st.Size == 0 {
		return true
	}
	at := time.Unix(0, st.Mtim.Nano())
	if at.After(d.booted) || at.Before(d.booted.Add(-unsynced)) {
		return false
	}
	for _, name := range []string{returnFile, outFile} {
		if is, err := torn.Look(fd, minion+"/"+name); err == nil && is == torn.Torn {
			return true
		}
	}
	return false
}

// whole says whether a record of a return can take the place of a damaged one.
func (r *record) whole() bool {
	return torn.Value(r.data) == torn.Whole && (!r.hasO || torn.Value(r.out) == torn.Whole)
}

// complete puts the files of temp into a minion's directory that has no return: a killed master or a power loss left it
// so. One that is there ahead is so no more when the record's was taken. mended says that they took the place of a
// damaged one.
func (d disk) complete(fd int, temp string, r *record) (isNew, mended bool, err error) {
	var st unix.Stat_t
	err = unix.Fstatat(fd, r.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false, false, err
	}
	if !r.ahead {
		if err := unix.Unlinkat(fd, r.name+"/"+AheadFile, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return false, false, &os.PathError{Op: "remove", Path: r.name + "/" + AheadFile, Err: err}
		}
	}
	err = unix.Fstatat(fd, r.name+"/"+returnFile, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
	case err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || !r.whole() || !d.damaged(fd, r.name, &st):
		return false, false, err
	default:
		mended = true
	}
	switch {
	case r.hasO:
		err = unix.Renameat(fd, temp+"/"+outFile, fd, r.name+"/"+outFile)
	case mended:
		if err = unix.Unlinkat(fd, r.name+"/"+outFile, 0); errors.Is(err, unix.ENOENT) {
			err = nil
		}
	}
	if err == nil && r.ahead && !mended { // a damaged one was taken before it was damaged
		err = unix.Renameat(fd, temp+"/"+AheadFile, fd, r.name+"/"+AheadFile)
	}
	if err != nil {
		return false, false, err
	}
	return true, mended, unix.Renameat(fd, temp+"/"+returnFile, fd, r.name+"/"+returnFile)
}
