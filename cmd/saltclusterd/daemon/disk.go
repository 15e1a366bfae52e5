package daemon

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"saltclusterd/sidecar/health"
)

// Room below which a disk is worth a warning, and below which nothing can be written to it.
const (
	littleRoom = 128 << 20
	noRoom     = 512 << 10
)

// room is what there is left of a file system.
type room struct {
	bytes  uint64
	inodes bool // there are some left
}

// roomAt asks the kernel, for a directory.
func roomAt(dir string) (room, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return room{}, fmt.Errorf("look for room in %s: %w", dir, err)
	}
	free := st.Bavail
	if os.Geteuid() == 0 { // who may have what is reserved
		free = st.Bfree
	}
	return room{bytes: free * uint64(st.Bsize), inodes: st.Files == 0 || st.Ffree > 0}, nil
}

// checkDisk looks whether there is room for what this node and its master have to remember. What is on a share is that check's. The
// master's own directories are a warning only: they fill on all nodes together, and a node without room there still answers most of what minions ask.
func (d *Daemon) checkDisk(context.Context) health.Result {
	dirs := []struct{ path, what string }{
		{d.cfg.Paths.StateDir, "what the cluster decides cannot be remembered here, and no return be journaled"},
	}
	if d.master != nil && !d.shares() {
		dirs = append(dirs,
			struct{ path, what string }{d.master.CacheDir, "no return, grain or pillar can be stored, and the salt-master fails in its own ways"},
			struct{ path, what string }{d.master.PkiDir, "what is decided about minion keys does not reach this salt-master"})
	}
	worst := fine
	for _, dir := range dirs {
		r, err := roomAt(dir.path)
		if err != nil { // it is made when it is needed, and whoever needs it says so
			continue
		}
		found := judgeRoom(dir.path, dir.what, r)
		if dir.path != d.cfg.Paths.StateDir {
			found.Level = min(found.Level, health.Warn)
		}
		if found.Level > worst.Level {
			worst = found
		}
	}
	return worst
}

func judgeRoom(dir, what string, r room) health.Result {
	hint := "df -h " + dir + "; make room there"
	switch {
	case !r.inodes:
		return health.Result{Level: health.Fail, Reason: fmt.Sprintf("the file system of %s can have no more files: %s", dir, what), Hint: "df -i " + dir + "; remove files there"}
	case r.bytes < noRoom:
		return health.Result{Level: health.Fail, Reason: fmt.Sprintf("the disk of %s is full: %s", dir, what), Hint: hint}
	case r.bytes < littleRoom:
		return health.Result{Level: health.Warn, Reason: fmt.Sprintf("the disk of %s is nearly full, %d MiB are left: soon %s", dir, r.bytes>>20, what), Hint: hint}
	}
	return fine
}
