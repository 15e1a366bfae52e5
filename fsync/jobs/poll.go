package jobs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/backoff"

	"golang.org/x/sys/unix"
)

// keepPolling finds jobs that were not announced, and what Python writes to jobs.
func (s *Store) keepPolling(ctx context.Context) {
	tick := time.NewTimer(backoff.Align(s.cfg.Timing.Poll))
	defer tick.Stop()
	tops := map[string]int64{}
	s.poll(tops, false)
	for {
		select {
		case <-ctx.Done():
			return
		case jid := <-s.news:
			s.published(jid)
		case <-tick.C:
			tick.Reset(backoff.Align(s.cfg.Timing.Poll))
			s.poll(tops, true)
			s.lookAtWatched()
		}
	}
}

// poll looks into those of the 256 directories in which jobs came or went.
func (s *Store) poll(tops map[string]int64, tell bool) {
	entries, err := os.ReadDir(s.disk.jobs())
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.fail("poll", "", err)
		}
		return
	}
	for _, e := range entries {
		var st unix.Stat_t
		top := e.Name()
		if len(top) != 2 || unix.Lstat(filepath.Join(s.disk.jobs(), top), &st) != nil {
			continue
		}
		if at := st.Mtim.Nano(); tops[top] != at {
			if !tell || s.pollTop(top) || time.Since(time.Unix(0, at)) > unborn {
				tops[top] = at
			}
		}
	}
}

// unborn is how long a directory may lack its file jid and yet become a job.
const unborn = 10 * time.Second

// pollTop looks for new jobs; whole is false when one may be in the making.
func (s *Store) pollTop(top string) (whole bool) {
	names, err := readNames(filepath.Join(s.disk.jobs(), top))
	if err != nil {
		return false
	}
	whole = true
	for _, name := range names {
		s.index.mu.Lock()
		known := s.index.places[placeKey(top, name)] != nil
		s.index.mu.Unlock()
		if known {
			continue
		}
		jid, ok := s.disk.jid(top, name)
		if !ok {
			whole = false
			continue
		}
		s.index.touched(jid, 0, true)
		s.watch(jid, false)
	}
	return whole
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
