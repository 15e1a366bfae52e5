package jobs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/backoff"
)

// idleShare is how much longer a scan rests than it works, so that it takes a small part of one CPU.
const idleShare = 4

// rest is how much longer a scan rests than it works. The first one is waited for.
func (s *Store) rest(turn uint32) time.Duration {
	if turn == 1 {
		return 1
	}
	return idleShare
}

// keepScanning looks at all jobs, again and again.
func (s *Store) keepScanning(ctx context.Context) {
	for turn := uint32(1); ; turn++ {
		began := time.Now()
		whole := s.scan(ctx, turn)
		if ctx.Err() != nil {
			return
		}
		s.metrics.scan.Observe(time.Since(began).Seconds())
		if whole {
			s.forgetUnseen(turn)
			s.index.settlePast()
		}
		if turn == 1 {
			s.SetScanned()
		}
		if !backoff.Sleep(ctx, s.cfg.Timing.Scan) {
			return
		}
	}
}

// scan looks at every job; whole says that it saw all there are.
func (s *Store) scan(ctx context.Context, turn uint32) (whole bool) {
	tops, err := readNames(s.disk.jobs())
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(s.disk.dir) // no jobs yet, or nothing mounted
		return err == nil
	}
	if err != nil {
		s.fail("scan", "", err)
		return false
	}
	whole = true
	for _, top := range tops {
		began := time.Now()
		names, err := readNames(filepath.Join(s.disk.jobs(), top))
		if err != nil {
			whole = whole && gone(err)
			continue
		}
		for _, name := range names {
			s.scanJob(top, name, turn)
		}
		if !backoff.Sleep(ctx, s.rest(turn)*time.Since(began)) {
			return false
		}
	}
	return whole
}

// scanJob looks at a job if its directory has changed.
func (s *Store) scanJob(top, name string, turn uint32) {
	s.index.mu.Lock()
	j := s.index.places[placeKey(top, name)]
	var was job
	if j != nil {
		j.turn, was = turn, *j
	}
	s.index.mu.Unlock()
	if j == nil {
		jid, ok := s.disk.jid(top, name)
		if !ok {
			return
		}
		s.found(jid, turn)
		return
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(s.disk.jobs(), top, name), &st); err != nil {
		return
	}
	if was.there && was.dir == st.Mtim.Nano() && !was.stale {
		s.retime(j, top, name)
		return
	}
	if s.changed(was.jid) && turn > 1 {
		s.watch(was.jid, false)
		s.tell(was.jid)
	}
}

// found takes in a job that was not announced.
func (s *Store) found(jid string, turn uint32) {
	s.index.mu.Lock()
	j := s.index.add(jid)
	if j != nil {
		j.turn, j.own = turn, true
	}
	s.index.mu.Unlock()
	if j == nil || !s.changed(jid) {
		return
	}
	if turn > 1 { // at the start all is compared
		s.tell(jid)
	}
	s.index.mu.Lock()
	young := s.cfg.Now().Sub(time.Unix(0, j.at)) < watchFor
	s.index.mu.Unlock()
	if young {
		s.watch(jid, false)
	}
}

// retime notes when the master has given a job a new date, because its cleaning goes by that.
func (s *Store) retime(j *job, top, name string) {
	var st unix.Stat_t
	if unix.Stat(filepath.Join(s.disk.jobs(), top, name, jidFile), &st) != nil {
		return
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	j.at = st.Mtim.Nano()
}

// forgetUnseen drops the jobs that a whole scan has not seen.
func (s *Store) forgetUnseen(turn uint32) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	for _, j := range s.index.jobs {
		if j.turn != turn && j.turn != 0 {
			s.index.drop(j)
		} else if j.turn == 0 {
			j.turn = turn // it came during the scan
		}
	}
	s.metrics.jobs.Set(float64(len(s.index.jobs)))
}
