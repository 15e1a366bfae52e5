package jobcache

import (
	"bytes"
	"errors"
	"os"
	"time"

	"github.com/tinylib/msgp/msgp"
	"golang.org/x/sys/unix"

	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

// condition is what a file of the job cache is like. After a power loss a file system has names whose content it never
// wrote: empty files, mostly, or files of zeros.
type condition uint8

const (
	missing condition = iota
	torn              // there, but not one value of msgpack
	whole
	unsure
)

// look tells the condition of a file below dir that holds one value. It follows no link.
//
// A small file is read. Of a larger one, the beginning, the end and whether it has a hole are looked at: its length is
// written with its last block, blocks that never reached the disk are holes (extents that are not written yet), and Salt
// ends a return with retcode or success, which are not the end of a file that was cut off.
func look(dir int, name string) (condition, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		return missing, nil
	case errors.Is(err, unix.ELOOP):
		return whole, nil // somebody else's business
	case err != nil:
		return missing, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	var block [smallFile]byte
	n, err := readAt(fd, block[:], 0)
	if err == nil && n == len(block) {
		if is, err := lookAtLarge(fd, block[:]); is != unsure {
			return is, err
		}
		return lookAtAll(fd, name)
	}
	if err != nil {
		return missing, &os.PathError{Op: "read", Path: name, Err: err}
	}
	return oneValue(block[:n]), nil
}

// smallFile is how much of a file is read at once: most returns have less.
const smallFile = 4 << 10

// oneValue says whether that is all of one value.
func oneValue(raw []byte) condition {
	if rest, err := msgp.Skip(raw); err != nil || len(rest) > 0 {
		return torn
	}
	return whole
}

// lookAtLarge tells the condition of a file by its ends; unsure: it is to be read.
func lookAtLarge(fd int, head []byte) (condition, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return missing, err
	}
	if !saltvalue.IsMap(head) {
		return unsure, nil
	}
	if hole, err := unix.Seek(fd, 0, unix.SEEK_HOLE); err == nil && hole != st.Size { // where holes are not known, there is none
		return torn, nil
	}
	var tail [16]byte
	n, err := readAt(fd, tail[:], st.Size-int64(len(tail)))
	if err != nil || n != len(tail) || !endsReturn(tail[:]) {
		return unsure, nil
	}
	return whole, nil
}

// endsReturn says whether a return.p may end like that: it is a map of return, retcode and success, in that order
// (salt/returners/local_cache.py:returner).
func endsReturn(tail []byte) bool {
	for _, key := range []string{"success", "retcode"} {
		if _, value, ok := bytes.Cut(tail, saltwire.AppendStr(nil, key)); ok && oneValue(value) == whole {
			return true
		}
	}
	return false
}

func lookAtAll(fd int, name string) (condition, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return missing, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	raw := make([]byte, st.Size)
	n, err := readAt(fd, raw, 0)
	if err != nil {
		return missing, &os.PathError{Op: "read", Path: name, Err: err}
	}
	return oneValue(raw[:n]), nil
}

// readAt fills b as far as the file goes.
func readAt(fd int, b []byte, at int64) (n int, err error) {
	for n < len(b) {
		k, err := unix.Pread(fd, b[n:], at+int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || k == 0:
			return n, err
		default:
			n += k
		}
	}
	return n, nil
}

// settled is how old an empty file is that nobody is about to fill.
const settled = 10 * time.Second

// mend looks once after a job's directory was opened for what a stock master stumbles over: an empty .minions.p raises
// whenever the job is read, an empty .load.p hides that there is none.
func (c *Cache) mend(j *jobDir) error {
	if j.mended {
		return nil
	}
	for name, repair := range map[string]func() error{
		".minions.p": func() error { return c.put(j.fd, ".minions.p", saltwire.AppendArrayHeader(nil, 0)) },
		".load.p":    func() error { return unix.Unlinkat(j.fd, ".load.p", 0) },
	} {
		st, there, err := status(j.fd, name)
		if err != nil {
			return err
		}
		if !there || st.Size > 0 || time.Since(time.Unix(st.Mtim.Unix())) < settled {
			continue
		}
		if err := repair(); err != nil {
			return err
		}
		c.cfg.Logger.Warn("empty file of a job mended", "path", j.path+"/"+name)
	}
	j.mended = true
	return nil
}
