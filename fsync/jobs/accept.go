package jobs

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/durable"
)

// What became of received records.
const (
	outcomeWritten = "written"
	outcomeKnown   = "known"
	outcomeOld     = "old"       // nearly as old as keep_jobs
	outcomeRemoved = "removed"   // the master has removed the job
	outcomeTwo     = "contested" // two masters gave the id to different jobs
	outcomeFull    = "full"      // there are more jobs than can be known
	outcomeFailed  = "failed"
)

// maxAhead is how far ahead of this node's clock a job's time may be: its cleaning goes by it.
const maxAhead = 10 * time.Minute

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) }

// noRoom says whether an error concerns the disk, or this process, rather than one job.
func noRoom(err error) bool {
	return durable.IsDiskError(err) || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

// accept writes what another node sent and returns when it is on disk. An error means that nothing of it may count.
func (s *Store) accept(rs []*record) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.Closed(); err != nil {
		return err
	}
	if err := s.disk.there(); err != nil {
		return err
	}
	wrote := false
	for len(rs) > 0 {
		n := 1
		for n < len(rs) && rs[n].jid == rs[0].jid {
			n++
		}
		did, err := s.acceptJob(rs[:n])
		if err != nil {
			s.metrics.received.WithLabelValues(outcomeFailed).Add(float64(n))
			s.fail("accept", rs[0].jid, err)
			if noRoom(err) {
				return err
			}
		}
		if err == nil {
			s.Feed().Got(rs[0].jid)
		}
		wrote = wrote || did
		rs = rs[n:]
	}
	if !wrote {
		return nil
	}
	return s.disk.sync()
}

// acceptJob writes records of one job. It tries again when the master has just removed the directory.
func (s *Store) acceptJob(rs []*record) (wrote bool, err error) {
	if s.cfg.Contested != nil && s.cfg.Contested(rs[0].jid) {
		s.metrics.received.WithLabelValues(outcomeTwo).Add(float64(len(rs)))
		return false, nil
	}
	if s.cfg.Received != nil {
		s.cfg.Received(rs[0].jid)
	}
	jid, at := rs[0].jid, min(rs[0].at, s.cfg.Now().Add(maxAhead).UnixNano())
	for tries := 0; tries < 3; tries++ {
		fd, err := s.disk.openJob(jid, at, false)
		if missing := gone(err); missing || err == nil {
			if why := s.index.refuses(jid, at, missing); why != "" {
				s.metrics.received.WithLabelValues(why).Add(float64(len(rs)))
				return false, nil
			}
			s.index.touched(jid, at, false) // before a poll can find it
			if missing {
				fd, err = s.disk.openJob(jid, at, true)
			}
		}
		if err == nil {
			wrote, err = s.write(fd, jid, rs)
			_ = unix.Close(fd)
			s.index.touched(jid, at, false)
			s.index.arrived(jid)
		}
		if !gone(err) {
			return wrote, err
		}
	}
	return wrote, err
}

func (s *Store) write(fd int, jid string, rs []*record) (wrote bool, err error) {
	var st unix.Stat_t
	noCache := unix.Fstatat(fd, noCacheFile, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
	same := recentReturns{}
	for _, r := range rs {
		did := false
		switch {
		case r.ret && noCache: // as a stock master does
		case r.ret:
			var mended bool
			if did, mended, err = s.disk.putReturn(fd, r, same); mended && err == nil {
				s.cfg.Logger.Warn("damaged return replaced by that of another node", "jid", jid, "minion", r.name)
			}
		default:
			did, err = s.writeHead(fd, r)
		}
		if err != nil {
			return wrote, err
		}
		what := outcomeKnown
		if did {
			wrote, what = true, outcomeWritten
		}
		s.metrics.received.WithLabelValues(what).Inc()
	}
	return wrote, nil
}

// writeHead writes a head file unless there is a better one.
func (s *Store) writeHead(fd int, r *record) (bool, error) {
	if have, ok := s.disk.head(fd, r.name); ok && !r.item().beats(have) {
		return false, nil
	}
	return true, s.disk.put(fd, r.name, r.data, r.mtime)
}
