package jobcache

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"saltclusterd/durable/torn"
)

// AheadFile lies beside a return that is in a job cache ahead of the node which published the job: that node is away,
// another one keeps the return for it, and its events have not been fired. It goes with the return to other nodes
// (fsync/jobs), and is removed where the return is taken after all, and then where copies are. Salt passes over it: it
// opens return.p and out.p of a minion's directory, and no other file.
const AheadFile = tempPrefix + "ahead"

// isTaken says whether a minion's directory holds a return that is not there ahead only.
func isTaken(path string) bool {
	dir, err := unix.Open(path, unix.O_DIRECTORY|unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	is, err := torn.Look(dir, "return.p")
	return err == nil && is == torn.Whole && !isAhead(dir)
}

func isAhead(dir int) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, AheadFile, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// markAhead makes a minion's directory that was there before say whether its return is there ahead only: not any more
// when the new one was taken, and as before when both are kept for another node. What held no whole return is about to
// get the new one. removed says that it said ahead before, and does not any more.
func (c *Cache) markAhead(j *jobDir, temp string, job *Job, whole bool) (removed bool, err error) {
	path := job.Minion + "/" + AheadFile
	switch {
	case !job.Ahead:
		err := unix.Unlinkat(j.fd, path, 0)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return false, &os.PathError{Op: "remove", Path: path, Err: err}
		}
		return err == nil, nil
	case !whole:
		if err := unix.Renameat(j.fd, temp+"/"+AheadFile, j.fd, path); err != nil {
			return false, &os.PathError{Op: "rename", Path: path, Err: err}
		}
	}
	return false, nil
}

// Tell has Config.Stored hear once more of a return that was taken before, as it lies there: other nodes may have
// copies of it that they filed ahead.
func (c *Cache) Tell(job Job) {
	if c.cfg.Stored == nil {
		return
	}
	path := filepath.Join(c.cfg.CacheDir, c.jobPath(job.JID), job.Minion)
	var err error
	if job.Return, err = os.ReadFile(filepath.Join(path, "return.p")); err != nil {
		return // removed meanwhile
	}
	if job.Out, err = os.ReadFile(filepath.Join(path, "out.p")); err != nil {
		job.Out = nil
	}
	c.cfg.Stored(&job)
}
