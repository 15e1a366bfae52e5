package doctor

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Account is a user by what decides about files.
type Account struct {
	Name string
	UID  uint32
	GIDs []uint32 // the first is the one that what it makes belongs to
}

// AccountOf is a user with all groups that this host says it has.
func AccountOf(name string, uid, gid uint32) Account {
	a := Account{Name: name, UID: uid, GIDs: []uint32{gid}}
	if u, err := user.LookupId(formatID(uid)); err == nil {
		if groups, err := u.GroupIds(); err == nil {
			a.GIDs = append(a.GIDs, parseIDs(groups)...)
		}
	}
	return a
}

// AccountOfProcess is the user of a process, with the groups that it has, which are those of its start. proc is /proc.
func AccountOfProcess(proc string, pid int, name string, uid, gid uint32) Account {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "status"))
	if err != nil {
		return AccountOf(name, uid, gid)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Groups:"); ok {
			return Account{Name: name, UID: uid, GIDs: append([]uint32{gid}, parseIDs(strings.Fields(rest))...)}
		}
	}
	return AccountOf(name, uid, gid)
}

func formatID(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

func parseIDs(texts []string) (out []uint32) {
	for _, t := range texts {
		if n, err := strconv.ParseUint(t, 10, 32); err == nil {
			out = append(out, uint32(n))
		}
	}
	return out
}

// mainGroup is the name of the group that what it makes belongs to.
func (a Account) mainGroup() string {
	if len(a.GIDs) == 0 {
		return a.Name
	}
	return groupName(a.GIDs[0])
}

func groupName(gid uint32) string {
	if g, err := user.LookupGroupId(formatID(gid)); err == nil {
		return g.Name
	}
	return formatID(gid)
}

// mayWrite says by owner and mode whether the user may write; where is a directory, whether it may make files there.
func (a Account) mayWrite(st *syscall.Stat_t, mode fs.FileMode) bool {
	need := fs.FileMode(0o2)
	if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		need |= 0o1
	}
	return a.has(need, st, mode)
}

// cannotWrite says that the user may not make files in a directory. Of itself this process asks the kernel; of others
// owner and mode say it, and nothing does where there is an ACL.
func (a Account) cannotWrite(dir string, st *syscall.Stat_t, mode fs.FileMode) bool {
	if os.Geteuid() == int(a.UID) {
		return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS) != nil
	}
	if a.mayWrite(st, mode) {
		return false
	}
	n, err := unix.Getxattr(dir, "system.posix_acl_access", nil)
	return err != nil || n == 0
}
