package unheard

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
	maxJobs  = 1000    // that are read at a time
	maxLoad  = 8 << 20 // bytes of one
	maxLoads = 64 << 20
	// dirSlack is by how much a job's directory may be older than the load in it: the master targets minions in between.
	dirSlack = time.Minute
	// agrees is by how much the time in a job's id may differ from that of the file. A master takes a moment, and counts minions in it.
	agrees = 20 * time.Second
)

// job is one that a master has saved.
type job struct {
	jid  string
	load []byte // content of .load.p
	at   time.Time
}

// listSaved reads the jobs that came to a job cache between since and until, the oldest first. Files that cannot be read are passed over.
// An error means that nothing could be read.
func listSaved(ctx context.Context, cacheDir string, since, until time.Time) (jobs []job, err error) {
	root, err := os.OpenRoot(filepath.Join(cacheDir, "jobs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the job cache: %w", err)
	}
	defer root.Close()
	dirs, err := youngDirs(root, ".", since)
	if err != nil {
		return nil, fmt.Errorf("read the job cache: %w", err)
	}
	room := maxLoads
	for _, dir := range dirs {
		inner, err := youngDirs(root, dir, since)
		if err != nil {
			continue // removed meanwhile
		}
		for _, name := range inner {
			if ctx.Err() != nil || len(jobs) == maxJobs {
				return jobs, ctx.Err()
			}
			if j, ok := readSaved(root, name, since, until, room); ok {
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

// youngDirs lists the directories in dir that have changed since then.
func youngDirs(root *os.Root, dir string, since time.Time) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var young []string
	for _, name := range names {
		path := filepath.Join(dir, name)
		if st, err := root.Lstat(path); err == nil && st.IsDir() && st.ModTime().After(since.Add(-dirSlack)) {
			young = append(young, path)
		}
	}
	return young, nil
}

// readSaved reads the job in dir if it is of the time asked for, and takes no more room than there is.
func readSaved(root *os.Root, dir string, since, until time.Time, room int) (j job, ok bool) {
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
	return j, ok && isOfThen(j.jid, j.at)
}

// isOfThen reports whether a job's id was made when its file was, by the local time or by UTC (utc_jid).
func isOfThen(jid string, at time.Time) bool {
	const layout = "20060102150405"
	if len(jid) < len(layout)+6 {
		return false
	}
	made, err := time.Parse(layout, jid[:len(layout)])
	if err != nil {
		return false
	}
	for _, zone := range []*time.Location{time.Local, time.UTC} {
		then := at.In(zone)
		_, offset := then.Zone()
		if then.Add(time.Duration(offset)*time.Second).Sub(made).Abs() <= agrees {
			return true
		}
	}
	return false
}
