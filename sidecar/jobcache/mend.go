package jobcache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/durable/torn"
)

// masterTemp is how the names of files begin that a master is writing (salt/utils/atomicfile.py).
const masterTemp = ".___atomic_write"

// writing is how long a master may be about to write a return into the directory that it has made for it.
const writing = 2 * time.Second

// age is how far from now a file was written last. A clock that was set back leaves files from the future, which are
// not being written either.
func age(st unix.Stat_t) time.Duration { return time.Since(time.Unix(st.Mtim.Unix())).Abs() }

// Stored says whether a master has stored a minion's return for a job: it is in its job cache, whole, and not only
// ahead. Cache.Has does, where there is a Cache.
func Stored(cacheDir, hashType, jid, minion string) bool {
	h := hashes[hashType]
	if h == 0 || jid == "" || !validID(minion) || usableID(minion) != nil {
		return false
	}
	return isTaken(filepath.Join(cacheDir, jobPath(h, jid), minion))
}

// Mend removes what a master that was killed, or a power loss, has left of a minion's return: a directory without it;
// and one that is there ahead only. The master itself would take the minion's next try for a second return, acknowledge
// it and drop it. To be called before it gets that one: should it be writing the first all the same, the next takes its
// place. A return that is there ahead only is removed whenever it was written, because no master writes into such a
// directory: it would not be looked at again.
func Mend(cacheDir, hashType, jid, minion string) (removed bool, err error) {
	h := hashes[hashType]
	if h == 0 || jid == "" || !validID(minion) || usableID(minion) != nil {
		return false, nil
	}
	path := filepath.Join(cacheDir, jobPath(h, jid), minion)
	dir, err := unix.Open(path, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read a return: %w", &os.PathError{Op: "open", Path: path, Err: err})
	}
	f := os.NewFile(uintptr(dir), path)
	defer f.Close()
	is, err := torn.Look(dir, "return.p")
	whole := is == torn.Whole
	if err != nil || whole && !isAhead(dir) {
		return false, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil || !whole && age(st) < writing {
		return false, err
	}
	names, err := f.Readdirnames(-1)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if name != "return.p" && name != "out.p" && name != AheadFile && !strings.HasPrefix(name, masterTemp) {
			return false, nil // whatever that is
		}
	}
	slices.Sort(names)
	slices.Reverse(names) // the return before the mark: what is without one was taken
	for _, name := range names {
		if err := unix.Unlinkat(dir, name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return false, &os.PathError{Op: "remove", Path: filepath.Join(path, name), Err: err}
		}
	}
	if err := unix.Rmdir(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return false, &os.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return true, nil
}
