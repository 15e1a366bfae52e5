package torn

import (
	"bytes"
	"errors"
	"os"

	"github.com/tinylib/msgp/msgp"
	"golang.org/x/sys/unix"
)

// Condition is what a file is like.
type Condition uint8

// Conditions.
const (
	Missing Condition = iota
	Torn              // there, but not one value of msgpack
	Whole
	unsure // Look never says so
)

// Look tells the condition of a file below dir that holds one value. It follows no link.
//
// A small file is read. Of a larger one, the beginning, the end and whether it has a hole are looked at: its length is
// written with its last block, blocks that never reached the disk are holes (extents that are not written yet), and
// Salt ends a return with retcode or success, which are not the end of a file that was cut off.
func Look(dir int, name string) (Condition, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		return Missing, nil
	case errors.Is(err, unix.ELOOP):
		return Whole, nil // a link, which others have to judge
	case err != nil:
		return Missing, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	var block [smallFile]byte
	n, err := fill(fd, block[:], 0)
	if err == nil && n == len(block) {
		if is, err := lookAtLarge(fd, block[:]); is != unsure {
			return is, err
		}
		return lookAtAll(fd, name)
	}
	if err != nil {
		return Missing, &os.PathError{Op: "read", Path: name, Err: err}
	}
	return Value(block[:n]), nil
}

// smallFile is how much of a file is read at once: most returns have less.
const smallFile = 4 << 10

// Value says whether that is all of one value, Whole, or Torn.
func Value(raw []byte) Condition {
	if rest, err := msgp.Skip(raw); err != nil || len(rest) > 0 {
		return Torn
	}
	return Whole
}

// lookAtLarge tells the condition of a file by its ends; unsure: it is to be read.
func lookAtLarge(fd int, head []byte) (Condition, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Missing, err
	}
	if msgp.NextType(head) != msgp.MapType {
		return unsure, nil
	}
	// where holes are not known, there is none
	if hole, err := unix.Seek(fd, 0, unix.SEEK_HOLE); err == nil && hole != st.Size {
		return Torn, nil
	}
	var tail [16]byte
	n, err := fill(fd, tail[:], st.Size-int64(len(tail)))
	if err != nil || n != len(tail) || !endsReturn(tail[:]) {
		return unsure, nil
	}
	return Whole, nil
}

// endsReturn says whether a return.p may end like that: it is a map of return, retcode and success, in that order
// (salt/returners/local_cache.py:returner).
func endsReturn(tail []byte) bool {
	for _, key := range []string{"success", "retcode"} {
		if _, value, ok := bytes.Cut(tail, msgp.AppendString(nil, key)); ok && Value(value) == Whole {
			return true
		}
	}
	return false
}

func lookAtAll(fd int, name string) (Condition, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Missing, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	raw := make([]byte, st.Size)
	n, err := fill(fd, raw, 0)
	if err != nil {
		return Missing, &os.PathError{Op: "read", Path: name, Err: err}
	}
	return Value(raw[:n]), nil
}

// fill fills b as far as the file goes.
func fill(fd int, b []byte, at int64) (n int, err error) {
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
