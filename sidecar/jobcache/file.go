package jobcache

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// tempPrefix marks what is being written: Salt passes over names with a dot, and the prefix is the project's own.
const tempPrefix = ".saltcluster-"

// ownUmask reads this process's umask without changing it.
func ownUmask() os.FileMode {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "\nUmask:")
	line, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseUint(strings.TrimSpace(line), 8, 32)
	if err != nil {
		return 0
	}
	return os.FileMode(v)
}

// create writes a new file at name below dir. It must not exist.
func (c *Cache) create(dir int, name string, data []byte) error {
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return &os.PathError{Op: "create", Path: name, Err: err}
	}
	for len(data) > 0 && err == nil {
		var n int
		if n, err = unix.Write(fd, data); errors.Is(err, unix.EINTR) {
			err = nil
			continue
		}
		data = data[max(n, 0):]
	}
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	if err != nil {
		return &os.PathError{Op: "write", Path: name, Err: err}
	}
	return c.adopt(dir, name, 0o644)
}

// put writes a file that appears whole or not at all.
func (c *Cache) put(dir int, name string, data []byte) error {
	temp := tempPrefix + strings.TrimPrefix(name, ".")
	err := c.create(dir, temp, data)
	if errors.Is(err, unix.EEXIST) { // left behind by a kill
		if err = unix.Unlinkat(dir, temp, 0); err == nil {
			err = c.create(dir, temp, data)
		}
	}
	if err == nil {
		err = unix.Renameat(dir, temp, dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temp, 0)
		return err
	}
	return nil
}

// status looks at name below dir without following a link.
func status(dir int, name string) (st unix.Stat_t, there bool, err error) {
	err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return st, false, nil
	}
	return st, err == nil, err
}
