package operator

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

// Room below which a disk is worth a warning, and below which nothing can be written to it.
const (
	littleRoom = 128 << 20
	noRoom     = 512 << 10
)

// room is what is left of a file system.
type room struct {
	bytes  uint64
	inodes bool // some are left
}

// roomAt asks the kernel for the room in the file system of dir.
func roomAt(dir string) (room, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return room{}, fmt.Errorf("look for room in %s: %w", dir, err)
	}
	free := st.Bavail
	if os.Geteuid() == 0 { // root may use what is reserved
		free = st.Bfree
	}
	return room{bytes: free * uint64(st.Bsize), inodes: st.Files == 0 || st.Ffree > 0}, nil
}

// Directory is a directory that needs room.
type Directory struct {
	Path     string
	Without  string // what fails without room
	WarnOnly bool
}

// StoreDirectories lists what needs room for what this node and its master store; master is nil on a witness. A share
// has a check of its own. The master's own directories are a warning only: they fill on all nodes together, and a node
// without room there still answers most requests of minions.
func StoreDirectories(stateDir string, master *localmaster.Config, shared bool) []Directory {
	dirs := []Directory{{
		Path: stateDir, Without: "decisions of the cluster and returns cannot be stored here",
	}}
	if master == nil || shared {
		return dirs
	}
	return append(dirs,
		Directory{
			Path: master.CacheDir, WarnOnly: true,
			Without: "no return, grain or pillar can be stored, and the salt-master fails as well",
		}, Directory{
			Path: master.PkiDir, WarnOnly: true, Without: "decisions about minion keys do not reach this salt-master",
		})
}

// CheckDisk returns the worst of what it finds in the directories. It ignores one that does not exist yet.
func CheckDisk(dirs ...Directory) health.Result { return checkRoom(roomAt, dirs) }

// checkRoom reports one directory, whatever their order: one whose lack of room is a failure, else that with the least
// room, which needs an operator first.
func checkRoom(roomAt func(dir string) (room, error), dirs []Directory) health.Result {
	worst, lacks := fine, fine.Level
	for _, dir := range dirs {
		r, err := roomAt(dir.Path)
		if err != nil { // it is made when it is needed, and a failure is reported there
			continue
		}
		found := judgeRoom(dir.Path, dir.Without, r)
		level := found.Level
		if dir.WarnOnly {
			found.Level = min(found.Level, health.Warn)
		}
		if found.Level > worst.Level || found.Level == worst.Level && level > lacks {
			worst, lacks = found, level
		}
	}
	return worst
}

func judgeRoom(dir, what string, r room) health.Result {
	hint := "df -h " + dir + "; make room there"
	switch {
	case !r.inodes:
		return health.Result{
			Level: health.Fail, Reason: fmt.Sprintf("the file system of %s is out of inodes: %s", dir, what),
			Hint: "df -i " + dir + "; remove files there",
		}
	case r.bytes < noRoom:
		return health.Result{Level: health.Fail, Reason: fmt.Sprintf("the disk of %s is full: %s", dir, what), Hint: hint}
	case r.bytes < littleRoom:
		return health.Result{
			Level:  health.Warn,
			Reason: fmt.Sprintf("the disk of %s is nearly full, %d MiB are left: soon %s", dir, r.bytes>>20, what), Hint: hint,
		}
	}
	return fine
}
