package jobcache

import (
	"container/list"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// maxJobDirs bounds the job directories held open. Returns come in bunches of a job.
const maxJobDirs = 128

// touchEvery is how often the date of a job's file "jid" follows its returns; a stock master writes it anew with each.
// Retention (keep_jobs_seconds) counts from it.
const touchEvery = 10 * time.Second

// jobDir is a job's directory, held open.
type jobDir struct {
	path    string
	fd      int
	made    bool      // by us: unless the job has other writers, only what this process wrote is there
	loaded  bool      // .load.p is there
	mended  bool      // see mendJob
	touched time.Time // when "jid" was written or dated
}

// jobDirs are the ones used last.
type jobDirs struct {
	byPath map[string]*list.Element
	order  list.List // newest first
}

func (d *jobDirs) getDir(path string) *jobDir {
	e := d.byPath[path]
	if e == nil {
		return nil
	}
	d.order.MoveToFront(e)
	return e.Value.(*jobDir)
}

func (d *jobDirs) addDir(j *jobDir) {
	if d.byPath == nil {
		d.byPath = map[string]*list.Element{}
	}
	d.byPath[j.path] = d.order.PushFront(j)
	for d.order.Len() > maxJobDirs {
		d.dropDir(d.order.Back().Value.(*jobDir).path)
	}
}

func (d *jobDirs) dropDir(path string) {
	if e := d.byPath[path]; e != nil {
		_ = unix.Close(e.Value.(*jobDir).fd)
		d.order.Remove(e)
		delete(d.byPath, path)
	}
}

func (d *jobDirs) closeAll() {
	for path := range d.byPath {
		d.dropDir(path)
	}
}

// openJob opens a job's directory, making it where it is missing; fresh: it hardly is there, and is made at once.
func (c *Cache) openJob(jid string, fresh bool) (*jobDir, error) {
	path := c.jobPath(jid)
	if j := c.dirs.getDir(path); j != nil {
		return j, nil
	}
	full := filepath.Join(c.cfg.CacheDir, path)
	fd, made, err := -1, false, error(unix.ENOENT)
	if !fresh {
		fd, err = openDir(full)
	}
	if errors.Is(err, unix.ENOENT) {
		if made, err = c.makeJobDir(path, full); err == nil {
			fd, err = openDir(full)
		}
	}
	if err != nil {
		return nil, err
	}
	j := &jobDir{path: path, fd: fd, made: made, mended: made}
	c.dirs.addDir(j)
	return j, nil
}

// makeJobDir says whether the directory was not there before.
func (c *Cache) makeJobDir(path, full string) (made bool, err error) {
	mode := c.dirMode()
	switch err := unix.Mkdir(full, mode); {
	case err == nil:
		return true, c.adoptFile(unix.AT_FDCWD, full, mode)
	case errors.Is(err, unix.EEXIST):
		return false, nil
	}
	return false, c.makeDirs(path)
}

func openDir(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// makeDirs makes path within cachedir, each missing part as the master would.
func (c *Cache) makeDirs(path string) error {
	at := c.cfg.CacheDir
	for i, part := range splitPath(path) {
		at = filepath.Join(at, part)
		mode := c.dirMode()
		if i == 0 && c.verified {
			mode = verifiedMode
		}
		if err := unix.Mkdir(at, mode); err != nil {
			if errors.Is(err, unix.EEXIST) {
				continue
			}
			return &os.PathError{Op: "mkdir", Path: at, Err: err}
		}
		if err := c.adoptFile(unix.AT_FDCWD, at, mode); err != nil {
			return err
		}
	}
	return nil
}

// verifiedMode is that of directories which a master makes when it starts (salt/utils/verify.py:verify_env), jobs and
// syndics among them, whatever its umask.
const verifiedMode = 0o755

func splitPath(path string) (parts []string) {
	for path != "" && path != "." {
		dir, base := filepath.Split(path)
		parts = append([]string{base}, parts...)
		path = filepath.Clean(dir)
	}
	return parts
}

// adoptFile gives what was just made the owner and mode that the master's own would have. Of ten thousand returns, none
// needs a chmod, unless this process's umask takes off what the master's leaves.
func (c *Cache) adoptFile(dir int, name string, mode uint32) error {
	if mode&c.own != 0 {
		var st unix.Stat_t
		if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return &os.PathError{Op: "stat", Path: name, Err: err}
		}
		if err := unix.Fchmodat(dir, name, mode|st.Mode&unix.S_ISGID, 0); err != nil { // a directory inherits that one
			return &os.PathError{Op: "chmod", Path: name, Err: err}
		}
	}
	if c.cfg.UID >= 0 || c.cfg.GID >= 0 {
		if err := unix.Fchownat(dir, name, c.cfg.UID, c.cfg.GID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return &os.PathError{Op: "chown", Path: name, Err: err}
		}
	}
	return nil
}
