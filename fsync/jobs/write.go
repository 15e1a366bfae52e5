package jobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"saltclusterd/durable"
)

const (
	// tempPrefix marks what is being written: Salt passes over names with a dot.
	tempPrefix = ".saltcluster-copy-"
	// verifiedMode is that of directories which a master makes when it starts (salt/utils/verify.py:verify_env).
	verifiedMode = 0o755
)

// openJob opens a job's directory; with create it is made where it is missing, with its file jid.
func (d disk) openJob(jid string, at int64, create bool) (fd int, err error) {
	path := d.path(jid)
	if create {
		if err := d.makeDirs(path); err != nil {
			return -1, err
		}
	}
	fd, err = unix.Open(path, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	if err := d.date(fd, jid, at); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (d disk) makeDirs(path string) error {
	for i, dir := range []string{d.jobs(), filepath.Dir(path), path} {
		mode := d.dirMode()
		if i == 0 && d.verified {
			mode = verifiedMode
		}
		err := unix.Mkdirat(unix.AT_FDCWD, dir, mode)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err == nil {
			err = d.adopt(unix.AT_FDCWD, dir, mode)
		}
		if err != nil {
			return &os.PathError{Op: "mkdir", Path: dir, Err: err}
		}
	}
	return nil
}

// date sees to the file jid, from whose time on the master keeps the job: it is as late as the sender's.
func (d disk) date(fd int, jid string, at int64) error {
	var st unix.Stat_t
	err := unix.Fstatat(fd, jidFile, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT) || err == nil && st.Size != int64(len(jid)):
		return d.put(fd, jidFile, []byte(jid), at)
	case err != nil:
		return &os.PathError{Op: "stat", Path: jidFile, Err: err}
	case milli(st.Mtim.Nano()) < milli(at):
		return touch(fd, jidFile, at)
	}
	return nil
}

func touch(fd int, name string, at int64) error {
	ts := []unix.Timespec{unix.NsecToTimespec(at), unix.NsecToTimespec(at)}
	if err := unix.UtimesNanoAt(fd, name, ts, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "touch", Path: name, Err: err}
	}
	return nil
}

// adopt gives a directory that was just made the owner and mode it would have from the master. Of ten thousand returns,
// none needs a chmod, unless this process's umask takes off what the master's leaves.
func (d disk) adopt(fd int, name string, mode uint32) error {
	if mode&d.own != 0 {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if err := unix.Fchmodat(fd, name, mode|st.Mode&unix.S_ISGID, 0); err != nil { // which it has inherited
			return err
		}
	}
	if d.uid < 0 && d.gid < 0 {
		return nil
	}
	return unix.Fchownat(fd, name, d.uid, d.gid, unix.AT_SYMLINK_NOFOLLOW)
}

// create writes a new file below a directory.
func (d disk) create(fd int, name string, data []byte) error {
	return d.createAs(fd, name, data, d.fileMode())
}

func (d disk) createAs(fd int, name string, data []byte, mode uint32) error {
	h, err := unix.Openat(fd, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return &os.PathError{Op: "create", Path: name, Err: err}
	}
	for len(data) > 0 && err == nil {
		var n int
		if n, err = unix.Write(h, data); errors.Is(err, unix.EINTR) {
			err = nil
		}
		data = data[max(n, 0):]
	}
	if err == nil && mode&d.own != 0 {
		err = unix.Fchmod(h, mode)
	}
	if err == nil && (d.uid >= 0 || d.gid >= 0) {
		err = unix.Fchown(h, d.uid, d.gid)
	}
	if err = errors.Join(err, unix.Close(h)); err != nil {
		return &os.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

// put writes a file with that time; it appears whole or not at all. One that takes another's place has its mode, as
// with a master.
func (d disk) put(fd int, name string, data []byte, at int64) (err error) {
	temp, mode := tempName(name), d.fileMode()
	var st unix.Stat_t
	if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
		mode = st.Mode & 0o777
	}
	err = d.createAs(fd, temp, data, mode)
	if errors.Is(err, unix.EEXIST) { // left behind by a kill
		if err = unix.Unlinkat(fd, temp, 0); err == nil {
			err = d.createAs(fd, temp, data, mode)
		}
	}
	if err == nil {
		err = touch(fd, temp, at)
	}
	if err == nil {
		err = unix.Renameat(fd, temp, fd, name)
	}
	if err != nil {
		_ = unix.Unlinkat(fd, temp, 0)
		return fmt.Errorf("put %s: %w", name, err)
	}
	return nil
}

// tempName is short whatever the name: file systems bound names at 255 bytes.
func tempName(name string) string {
	return tempPrefix + strconv.FormatUint(xxhash.Sum64String(name), 16)
}

// recentReturns are returns of one job just written, by their bytes: minions often return the same, and a second name
// for a file costs a small part of a second file. A return is never written to once it is there.
type recentReturns map[string]string

// maxRecentReturns and maxRecentReturn bound them, in number and bytes.
const (
	maxRecentReturns = 16
	maxRecentReturn  = 4 << 10
)

func (t recentReturns) note(r *record) {
	if len(t) < maxRecentReturns && len(r.data) <= maxRecentReturn {
		t[string(r.data)] = r.name
	}
}

// putReturn writes a minion's directory unless it has a return already, when isNew is false; mended: it had a damaged
// one.
func (d disk) putReturn(fd int, r *record, same recentReturns) (isNew, mended bool, err error) {
	if len(r.data) == 0 {
		return false, false, nil // what a power loss left of it there
	}
	temp, mode := tempName(r.name), d.dirMode()
	err = unix.Mkdirat(fd, temp, mode)
	if errors.Is(err, unix.EEXIST) { // left behind by a kill
		if err = removeTemp(fd, temp); err == nil {
			err = unix.Mkdirat(fd, temp, mode)
		}
	}
	if err != nil {
		return false, false, &os.PathError{Op: "mkdir", Path: temp, Err: err}
	}
	if err = d.adopt(fd, temp, mode); err == nil {
		err = d.fill(fd, temp, r, same)
	}
	if err == nil {
		if err = unix.Renameat(fd, temp, fd, r.name); err == nil {
			same.note(r)
			return true, false, nil
		}
	}
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOTDIR) {
		isNew, mended, err = d.complete(fd, temp, r)
	}
	return isNew, mended, errors.Join(err, removeTemp(fd, temp))
}

func (d disk) fill(fd int, temp string, r *record, same recentReturns) error {
	if r.hasO {
		if err := d.create(fd, temp+"/"+outFile, r.out); err != nil {
			return err
		}
	}
	if r.ahead {
		if err := d.create(fd, temp+"/"+AheadFile, nil); err != nil {
			return err
		}
	}
	if name, ok := same[string(r.data)]; ok {
		if unix.Linkat(fd, name+"/"+returnFile, fd, temp+"/"+returnFile, 0) == nil {
			return nil
		} // too many names, or gone
		delete(same, string(r.data))
	}
	return d.create(fd, temp+"/"+returnFile, r.data)
}

// removeTemp removes a directory of ours, which holds nothing but what fill writes.
func removeTemp(fd int, temp string) error {
	for _, name := range []string{returnFile, outFile, AheadFile} {
		if err := unix.Unlinkat(fd, temp+"/"+name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return &os.PathError{Op: "remove", Path: temp + "/" + name, Err: err}
		}
	}
	if err := unix.Unlinkat(fd, temp, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "remove", Path: temp, Err: err}
	}
	return nil
}

// there says whether the master has a cachedir, which it makes when it first starts.
func (d disk) there() error {
	if _, err := os.Stat(d.dir); err != nil {
		return fmt.Errorf("write jobs: %w", err)
	}
	return nil
}

// sync makes sure that what was written survives a power loss. jobs may be a mount or a link of its own.
func (d disk) sync() error {
	err := durable.SyncFS(d.jobs())
	if errors.Is(err, os.ErrNotExist) {
		err = durable.SyncFS(d.dir)
	}
	if err != nil {
		return fmt.Errorf("sync the job cache: %w", err)
	}
	return nil
}
