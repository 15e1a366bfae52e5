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

// usualUmask is that of a master that was started as a daemon (salt/utils/process.py:daemonize), and of one started by
// systemd.
const usualUmask = 0o022

// ownUmask reads this process's umask without changing it. Where it cannot, it is taken to let nothing through.
func ownUmask() uint32 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0o777
	}
	_, rest, _ := strings.Cut(string(b), "\nUmask:")
	line, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseUint(strings.TrimSpace(line), 8, 32)
	if err != nil {
		return 0o777
	}
	return uint32(v)
}

// fileMode is that of a file which the master opens to write (salt/utils/files.py:fopen), or puts in place whole
// (salt/utils/atomicfile.py), where there was none.
func (c *Cache) fileMode() uint32 { return 0o666 &^ c.cfg.Umask() }

// dirMode is that of a directory which the master makes for a job (os.makedirs).
func (c *Cache) dirMode() uint32 { return 0o777 &^ c.cfg.Umask() }

// createFile writes a new file at name below dir. It must not exist.
func (c *Cache) createFile(dir int, name string, data []byte) error {
	return c.createAs(dir, name, data, c.fileMode())
}

func (c *Cache) createAs(dir int, name string, data []byte, mode uint32) error {
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
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
	return c.adoptFile(dir, name, mode)
}

// putFile writes a file that appears whole or not at all. One that takes another's place has its mode, as with a
// master.
func (c *Cache) putFile(dir int, name string, data []byte) error {
	st, there, err := statFile(dir, name)
	if err != nil {
		return err
	}
	mode := c.fileMode()
	if there && st.Mode&unix.S_IFMT == unix.S_IFREG {
		mode = st.Mode & 0o777
	}
	return c.putAs(dir, name, data, mode)
}

// putNew is put into a directory that has no such file.
func (c *Cache) putNew(dir int, name string, data []byte) error {
	return c.putAs(dir, name, data, c.fileMode())
}

func (c *Cache) putAs(dir int, name string, data []byte, mode uint32) error {
	temp := tempPrefix + strings.TrimPrefix(name, ".")
	err := c.createAs(dir, temp, data, mode)
	if errors.Is(err, unix.EEXIST) { // left behind by a kill
		if err = unix.Unlinkat(dir, temp, 0); err == nil {
			err = c.createAs(dir, temp, data, mode)
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

// statFile looks at name below dir without following a link.
func statFile(dir int, name string) (st unix.Stat_t, there bool, err error) {
	err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return st, false, nil
	}
	return st, err == nil, err
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
