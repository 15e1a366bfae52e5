package missedjobs

import (
	"context"
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

	"saltclusterd/sidecar/saltvalue"
)

const (
	maxJobs  = 1000    // read in one scan
	maxLoad  = 8 << 20 // bytes of one job
	maxLoads = 64 << 20
	// dirSlack is how much older than its load a job's directory may be: the master resolves the target in between.
	dirSlack = time.Minute
	// maxIDSkew is how far the time in a job id may be from the file's modification time. The master resolves the target
	// in between.
	maxIDSkew = 20 * time.Second
)

// job is an entry of the job cache.
type job struct {
	jid  string
	load []byte // content of .load.p
	at   time.Time
}

// listJobs reads the jobs that were saved between since and until, oldest first. It skips files that cannot be read. An
// error means that the job cache itself could not be read.
func listJobs(ctx context.Context, cacheDir string, since, until time.Time) (jobs []job, err error) {
	root, err := openDir(filepath.Join(cacheDir, "jobs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read job cache: %w", err)
	}
	defer root.Close()
	dirs, err := listChangedDirs(ctx, root, ".", since)
	if err != nil {
		return nil, fmt.Errorf("read job cache: %w", err)
	}
	room := maxLoads
	for _, dir := range dirs {
		inner, err := listChangedDirs(ctx, root, dir, since)
		if err != nil {
			continue // removed in the meantime
		}
		for _, name := range inner {
			if ctx.Err() != nil || len(jobs) == maxJobs {
				return jobs, ctx.Err()
			}
			if j, ok := readJob(root, name, since, until, room); ok {
				jobs = append(jobs, j)
				room -= len(j.load)
			}
		}
	}
	slices.SortFunc(jobs, func(a, b job) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return strings.Compare(a.jid, b.jid)
	})
	return jobs, nil
}

// openDir opens a directory of the master's user, who may have put something else in its place: opening a named pipe
// would block.
func openDir(path string) (*os.Root, error) {
	fd, err := unix.Open(path, unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_RDONLY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// listChangedDirs lists the directories in dir that may hold jobs saved at or after since.
func listChangedDirs(ctx context.Context, root *os.Root, dir string, since time.Time) ([]string, error) {
	f, err := root.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		path := filepath.Join(dir, name)
		if st, err := root.Lstat(path); err == nil && st.IsDir() && st.ModTime().After(since.Add(-dirSlack)) {
			changed = append(changed, path)
		}
	}
	return changed, nil
}

// readJob reads the job in dir if it was saved between since and until and its load has at most room bytes.
func readJob(root *os.Root, dir string, since, until time.Time, room int) (j job, ok bool) {
	path := filepath.Join(dir, ".load.p")
	st, err := root.Lstat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > int64(min(maxLoad, room)) {
		return j, false
	}
	if j.at = st.ModTime(); j.at.Before(since) || j.at.After(until) {
		return j, false
	}
	f, err := root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return j, false
	}
	defer f.Close()
	if j.load, err = io.ReadAll(io.LimitReader(f, st.Size()+1)); err != nil || int64(len(j.load)) != st.Size() {
		return j, false
	}
	fields, ok := saltvalue.ParseFields(j.load)
	if !ok {
		return j, false
	}
	raw, _ := fields.Get("jid")
	j.jid, ok = saltvalue.Text(raw)
	return j, ok && wasMadeAt(j.jid, j.at)
}

// wasMadeAt reports whether the time in a job id matches the time of its file.
func wasMadeAt(jid string, at time.Time) bool {
	made, ok := parseID(jid)
	return ok && at.Sub(made).Abs() <= maxIDSkew
}

// parseID returns the time in a job id, which is in UTC whatever the master's time zone and its utc_jid
// (salt/utils/jid.py).
func parseID(jid string) (made time.Time, ok bool) {
	const layout = "20060102150405"
	if len(jid) < len(layout)+6 {
		return made, false
	}
	made, err := time.Parse(layout, jid[:len(layout)])
	return made, err == nil
}
