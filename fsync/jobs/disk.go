package jobs

import (
	"crypto"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxFile bounds one file of a job that is carried.
const maxFile = 64 << 20

var errTooLarge = errors.New("larger than 64 MiB")

// disk is the master's job cache.
type disk struct {
	dir      string // cachedir
	uid, gid int
	hash     crypto.Hash
	umask    func() uint32 // the master's
	own      uint32        // the umask of this process, which the kernel takes off modes that are not set explicitly
	verified bool          // see Master
	booted   time.Time     // when this machine started
}

func newDisk(m Master) disk {
	d := disk{dir: m.CacheDir, uid: m.UID, gid: m.GID, hash: hashes[m.HashType], umask: m.Umask, own: ownUmask(),
		verified: m.Verified, booted: m.Booted}
	if d.umask == nil {
		d.umask = func() uint32 { return usualUmask }
	}
	if d.booted.IsZero() {
		d.booted = bootTime(time.Now())
	}
	if d.uid == os.Geteuid() && d.gid == os.Getegid() {
		d.uid, d.gid = -1, -1 // files are created so anyway
	}
	return d
}

func (d disk) jobs() string { return filepath.Join(d.dir, "jobs") }

// place is a job's directory below jobs: two digits, and the others (salt/utils/jid.py:jid_dir).
func (d disk) place(jid string) (top, name string) {
	h := d.hash.New()
	h.Write([]byte(jid))
	sum := hex.EncodeToString(h.Sum(nil))
	return sum[:2], sum[2:]
}

func (d disk) path(jid string) string {
	top, name := d.place(jid)
	return filepath.Join(d.jobs(), top, name)
}

// sight is what a look at a job's directory found.
type sight struct {
	at    int64 // time of the file jid, nanoseconds
	dir   int64 // time of the directory
	items []item
	half  bool // some minions' directories have no return yet

	damaged int // returns that a power loss has spoilt, which are none
}

// returns counts the minions that have returned.
func (s sight) returns() (n int) {
	for _, it := range s.items {
		if it.ret {
			n++
		}
	}
	return n
}

// look lists what there is of a job. A job without a file jid does not exist: fs.ErrNotExist.
func (d disk) look(jid string) (s sight, err error) {
	f, err := os.Open(d.path(jid))
	if err != nil {
		return s, err
	}
	defer f.Close()
	fd := int(f.Fd())
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return s, fmt.Errorf("look at job: %w", err)
	}
	s.dir = st.Mtim.Nano() // before the list: what comes later is found later
	if err := unix.Fstatat(fd, jidFile, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return s, fmt.Errorf("look at job: %w", err)
	}
	s.at = st.Mtim.Nano()
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			d.lookAt(fd, e, &s)
		}
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, fmt.Errorf("look at job: %w", err)
		}
	}
}

func (d disk) lookAt(fd int, e fs.DirEntry, s *sight) {
	name := e.Name()
	var st unix.Stat_t
	switch {
	case e.IsDir() && validMinion(name):
		if err := unix.Fstatat(fd, name+"/"+returnFile, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil ||
			st.Mode&unix.S_IFMT != unix.S_IFREG {
			s.half = true
			return
		}
		if d.damaged(fd, name, &st) {
			s.damaged++
			return
		}
		s.items = append(s.items, item{name: name, ret: true, ahead: d.ahead(fd, name)})
	case e.Type().IsRegular() && validHead(name):
		if it, ok := d.head(fd, name); ok {
			s.items = append(s.items, it)
		}
	}
}

// head describes a head file.
func (d disk) head(fd int, name string) (item, bool) {
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return item{}, false
	}
	it := item{name: name, rank: rankGood, mtime: st.Mtim.Nano(), size: st.Size}
	switch {
	case st.Size > maxFile:
		return item{}, false
	case name == noCacheFile:
		it.mtime, it.size = 0, 0 // there or not
	case name == loadFile:
		raw, err := d.read(fd, name)
		if err != nil {
			return item{}, false
		}
		it.size, it.rank = int64(len(raw)), rankOf(name, raw)
	case st.Size < 2:
		it.rank = rankPoor
	}
	return it, true
}

// read reads a file below a directory, without following a link.
func (d disk) read(fd int, name string) ([]byte, error) {
	h, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(h), name)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: name, Err: errors.New("no file")}
	}
	if info.Size() > maxFile {
		return nil, &os.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	raw := make([]byte, 0, info.Size()+1)
	for {
		n, err := f.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		if errors.Is(err, io.EOF) {
			return raw, nil
		}
		if err != nil {
			return nil, err
		}
		if len(raw) > maxFile {
			return nil, &os.PathError{Op: "read", Path: name, Err: errTooLarge}
		}
		raw = slices.Grow(raw, 1)
	}
}

// jid reads which job a directory is of; it must lie where that job's belongs.
func (d disk) jid(top, name string) (string, bool) {
	f, err := os.Open(filepath.Join(d.jobs(), top, name))
	if err != nil {
		return "", false
	}
	defer f.Close()
	raw, err := d.read(int(f.Fd()), jidFile)
	if err != nil {
		return "", false
	}
	jid := strings.TrimSpace(string(raw))
	if !validJID(jid) {
		return "", false
	}
	t, n := d.place(jid)
	return jid, t == top && n == name
}
